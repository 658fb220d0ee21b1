"""Mutations: small faults in the product's code, each with the test that must catch it."""

from __future__ import annotations

from typing import NamedTuple


class Mutation(NamedTuple):
    """A fault and its test."""

    # Effect of the fault.
    fault: str
    file: str
    # Must occur in the file exactly once.
    before: str
    after: str
    # pytest node that passes without the fault and fails with it.
    test: str


LINKS_OPENED, LEASES = "bot/web/link_verification.py", "storage/sql/leased_queue.py"
JUDGE, PUBLICATIONS = "bot/answers/generation/judge.py", "storage/queues/publication_queue.py"
VIEWER_TESTS = "tests/bot/web/test_viewer.py"
JUDGE_TESTS = "tests/bot/answers/generation/test_judge.py"
PUBLICATION_TESTS = "tests/storage/queues/test_publication_queue.py"
VERIFIER = "bot/answers/generation/sentence_verifier.py"
VERIFIER_TESTS = "tests/bot/answers/generation/test_sentence_verifier.py"
CLAIMS, CLAIMS_TESTS = "bot/answers/verification/claims.py", "tests/bot/answers/verification/test_claims.py"
SPELLING_TESTS = "tests/bot/answers/understanding/test_spelling_correction.py"
SANDBOX_TESTS = "tests/storage/pdf/test_sandbox.py"

MUTATIONS = (
    Mutation(
        "what somebody else wrote into the store is taken for a reading",
        "storage/files/object_store.py",
        "return hmac.compare_digest(file.read(SEAL_BYTES), self._seal(file, name))",
        "return bool(file.read(SEAL_BYTES))",
        "tests/storage/files/test_reading_archive.py::test_a_forged_reading_in_the_store_counts_as_lost",
    ),
    Mutation(
        "an admin of one workspace pauses the folders of another",
        "bot/chat/commands/admin_commands.py",
        "chat.platform not in self._shared or folder.installation == chat.installation",
        "True",
        "tests/security/test_two_installations.py::test_an_admin_pauses_no_folder_of_another_installation",
    ),
    Mutation(
        "a link opens though its version belongs to another channel",
        LINKS_OPENED,
        "source is None or source.is_deleted or source.channel_id != claims.channel_id",
        "source is None or source.is_deleted",
        f"{VIEWER_TESTS}::test_a_link_opens_no_version_of_another_channel",
    ),
    Mutation(
        "a link opens though its citation belongs to another channel",
        LINKS_OPENED,
        "(citation.channel_id, citation.version_id, citation.page) != signed",
        "(citation.version_id, citation.page) != signed[1:]",
        f"{VIEWER_TESTS}::test_a_link_opens_no_citation_of_another_channel",
    ),
    Mutation(
        "a question's button of one Teams channel asks in another",
        "bot/platforms/teams/question_actions.py",
        'not isinstance(value, Mapping) or value.get("tenant") != tenant',
        "not isinstance(value, Mapping)",
        "tests/bot/platforms/teams/test_teams_activities.py::test_a_click_asks_only_where_its_button_was_posted",
    ),
    Mutation(
        "the message extension gives an answer to somebody else than its asker",
        "bot/platforms/teams/compose_extension.py",
        'is_private(stored.address) and stored.address.get("asker") == asker',
        "is_private(stored.address)",
        "tests/bot/platforms/teams/test_compose_extension.py::test_an_answer_is_only_for_its_asker_in_its_channel",
    ),
    Mutation(
        "a card in Teams that may be there is posted again after a crash",
        "bot/platforms/teams/messenger.py",
        "        if card == CARD_MAYBE_POSTED:\n            return",
        "        if card == CARD_MAYBE_POSTED:\n            card = None",
        "tests/bot/platforms/teams/test_teams_crashes.py::test_a_crash_leaves_one_answer_and_never_a_second_card",
    ),
    Mutation(
        "every chat asks the library of direct chats",
        "bot/chat/conversation/inbox_replies.py",
        "if chat.is_direct:",
        "if chat.tenant:",
        "tests/bot/chat/conversation/test_conversation.py::test_other_chats_search_only_their_own_documents",
    ),
    Mutation(
        "a direct chat asks every channel that it ever heard of",
        "bot/chat/conversation/direct_chats.py",
        "names = await memberships.channels_of_asker(item.address)",
        "names = {one.tenant: one.name for one in await self._channels.all()}",
        "tests/journeys/chats/test_member_channels.py::test_each_canary_is_found_by_members_only",
    ),
    Mutation(
        "the sources of an answer are shown again to who has left its channel",
        "bot/chat/commands/thread_commands.py",
        "channel = next((one for one in question.asked_channels if one.id == origin), None)",
        "channel = replace(question.channel, id=origin)",
        "tests/journeys/chats/test_member_channels.py::test_former_members_are_shown_no_channel_content",
    ),
    Mutation(
        "why? below an answer in a direct chat is told to who has left its channel",
        "bot/platforms/slack/listeners/answer_buttons.py",
        "if asked and not await _may_see(slack, click):",
        "if asked is False:",
        "tests/journeys/chats/test_member_channels.py::test_app_home_and_shared_answers_are_for_members_only",
    ),
    Mutation(
        "who has left a channel may share an answer from it",
        "bot/platforms/slack/listeners/shared_answers.py",
        "if not is_member or not await slack.memberships.may_see(stored):",
        "if not is_member:",
        "tests/journeys/chats/test_member_channels.py::test_app_home_and_shared_answers_are_for_members_only",
    ),
    Mutation(
        "an old answer is revised for who has left its channel",
        "bot/platforms/slack/messenger.py",
        "if not await self._memberships.may_read(address, shown):",
        "if not shown and not address:",
        "tests/journeys/chats/test_member_channels.py"
        "::test_former_members_get_no_notice_of_changed_documents",
    ),
    Mutation(
        "a note on a page comes to who has left its channel",
        "bot/chat/conversation/inbox_replies.py",
        "return tenant is not None and await self._direct.may_read(item, [tenant])",
        "return tenant is not None",
        "tests/journeys/chats/test_member_channels.py"
        "::test_former_members_get_no_notice_of_changed_documents",
    ),
    Mutation(
        "an answer that waited is shown to who has left its channel",
        "bot/chat/conversation/inbox_replies.py",
        "if refusal := await self._direct.refusal(item, shown):",
        "if refusal := await self._direct.refusal(item, ()):",
        "tests/bot/chat/conversation/test_conversation.py"
        "::test_a_delayed_answer_is_shown_only_to_current_members",
    ),
    Mutation(
        "a direct chat recalls what documents said that it may not ask any more",
        "storage/chat/thread_memory.py",
        "rows = [row for row in rows if documents.keys() >= set(row.versions)]",
        "pass",
        "tests/storage/chat/test_thread_memory.py::test_a_direct_chat_recalls_only_turns_of_its_library",
    ),
    Mutation(
        "a word is corrected towards the documents of another channel",
        "bot/answers/understanding/spelling_correction.py",
        "self._vocabularies.words(channel.id)",
        "self._vocabularies.words(2)",
        f"{SPELLING_TESTS}::test_a_word_of_another_channel_is_no_correction",
    ),
    Mutation(
        "a correctly spelt word is replaced by one like it",
        "bot/answers/understanding/spelling_correction.py",
        "(word.isupper() and len(word) <= MAX_ABBREVIATION) or self._is_word(word))",
        "(word.isupper() and len(word) <= MAX_ABBREVIATION))",
        f"{SPELLING_TESTS}::test_a_frequent_word_is_never_corrected",
    ),
    Mutation(
        "a document's typing error is searched for",
        "bot/answers/understanding/spelling_correction.py",
        "if not _is_document_typo(one[-1], counts, has_word_list)",
        "if one",
        f"{SPELLING_TESTS}::test_no_word_is_corrected_to_another_meaning",
    ),
    Mutation(
        "a model is asked a corrected question",
        "bot/answers/generation/prompt.py",
        "typed, searched = question.typed or question.text, question.text",
        "typed, searched = question.text, question.text",
        "tests/bot/answers/generation/test_prompt.py"
        "::test_the_searched_wording_is_a_hint_after_the_typed_question",
    ),
    Mutation(
        "words of a document that was replaced stay in the vocabulary",
        "storage/documents/vocabulary.py",
        "if known is None or known.live != live:",
        "if known is None:",
        "tests/storage/documents/test_vocabulary.py::test_only_live_documents_of_the_channel_add_words",
    ),
    Mutation(
        "passages are shown where the reply should be a plain no",
        JUDGE,
        "(is_hit or probability >= self._threshold) and not missing",
        "not missing",
        f"{JUDGE_TESTS}::test_the_threshold_decides_between_passages_and_not_found",
    ),
    Mutation(
        "a sentence without the number that is asked for counts like one with it",
        JUDGE,
        "lacks=not RequiredAnswer(question.text).is_held_by(*near),",
        "lacks=False,",
        f"{JUDGE_TESTS}::test_a_missing_requested_number_lowers_the_confidence",
    ),
    Mutation(
        "a worker that lost a reading's lease writes its result",
        LEASES,
        "id=lease.id, fence=lease.fence, state=lease.state",
        "id=lease.id, state=lease.state",
        "tests/storage/queues/test_reading_queue.py::test_a_stale_owner_cannot_change_a_reading",
    ),
    Mutation(
        "a worker that lost a publication's lease makes it live",
        LEASES,
        "id=lease.id, fence=lease.fence, state=lease.state",
        "id=lease.id, state=lease.state",
        f"{PUBLICATION_TESTS}::test_a_stale_owner_cannot_change_a_publication",
    ),
    Mutation(
        "a worker that lost a question's lease answers it",
        LEASES,
        "id=lease.id, fence=lease.fence, state=lease.state",
        "id=lease.id, state=lease.state",
        "tests/storage/chat/test_inbox.py::test_a_worker_without_its_lease_cannot_write",
    ),
    Mutation(
        "a process that lost a folder's lease deletes its documents",
        "storage/folders/folders.py",
        "owner is None or folder.lease_owner in (None, owner)",
        "True",
        "tests/storage/folders/test_folder_leases.py::test_a_former_holder_deletes_no_documents",
    ),
    Mutation(
        "a process that lost a folder's lease gives away that of the next one",
        "storage/folders/folder_leases.py",
        "col(FolderRow.location).in_(ours), col(FolderRow.lease_owner) == self._owner",
        "(col(FolderRow.location).in_(ours),)",
        "tests/storage/folders/test_folder_leases.py::test_a_former_holder_does_not_release_the_new_lease",
    ),
    Mutation(
        "the full reading of an older version replaces the quick one of a newer",
        PUBLICATIONS,
        "any(rank > mine for _, rank in live)",
        "any(rank[1] > mine[1] for _, rank in live)",
        f"{PUBLICATION_TESTS}::test_only_newer_or_better_publications_replace_the_live_one",
    ),
    Mutation(
        "a version older than the live one goes live",
        PUBLICATIONS,
        " or any(rank > mine for _, rank in live):",
        ":",
        f"{PUBLICATION_TESTS}::test_only_newer_or_better_publications_replace_the_live_one",
    ),
    Mutation(
        "a whole folder goes past the deletion brake",
        "ingestion/watch/deletions.py",
        "(lost == of_folder or lost + before > share * of_channel)",
        "lost + before > share * of_channel",
        "tests/ingestion/watch/test_deletions.py::test_deleting_a_folder_or_a_large_share_needs_approval",
    ),
    Mutation(
        "the children that open PDFs keep the network",
        "storage/pdf/sandbox.py",
        "_unshare(_CLONE_NEWNET) or _unshare(_CLONE_NEWUSER | _CLONE_NEWNET)",
        "True",
        f"{SANDBOX_TESTS}::test_the_running_program_has_no_network_and_no_privileges",
    ),
    Mutation(
        "the program that opens PDFs is not isolated",
        "storage/pdf/fork_server.py",
        "sandbox.enter_sandbox()",
        '{"network": "namespace", "files": "none", "calls": "listed"}',
        f"{SANDBOX_TESTS}::test_the_running_program_has_no_network_and_no_privileges",
    ),
    Mutation(
        "the child that reads a PDF may call what its fork server may",
        "storage/pdf/fork_server.py",
        "        sandbox.isolate_job()\n",
        "",
        f"{SANDBOX_TESTS}::test_a_cancelled_reading_is_stopped",
    ),
    Mutation(
        "a machine that confines nothing is accepted where confinement is required",
        "storage/pdf/fork_client.py",
        "if self._is_confinement_required:",
        "if False:",
        f"{SANDBOX_TESTS}::test_insufficient_confinement_is_warned_of_or_refused",
    ),
    Mutation(
        "the embedded index keeps all channels in one file",
        "storage/index/embedded/tenant_file.py",
        'return self._folder / f"{TenantName(str(tenant))}.sqlite3"',
        "return self._folder / f\"{TenantName(str(tenant)) and 'all'}.sqlite3\"",
        "tests/storage/index/test_index_contract.py::test_tenants_are_isolated_from_each_other[embedded]",
    ),
    Mutation(
        "what is not live is shown",
        "storage/documents/catalog.py",
        '.where(col(PublicationRow.state) == "live", col(DocumentRow.state) != "deleted")',
        '.where(col(DocumentRow.state) != "deleted")',
        "tests/storage/documents/test_catalog.py::test_a_flip_shows_either_the_old_or_the_new_publication",
    ),
    Mutation(
        "a sentence stands though its quote does not",
        CLAIMS,
        "if not located:",
        "if not located and not claim.text:",
        f"{CLAIMS_TESTS}::test_a_quote_found_nowhere_is_dropped",
    ),
    Mutation(
        "a quote is believed to stand where the answerer says",
        CLAIMS,
        "is_there = text[slice(*span)] == quote.text and _is_whole(text, *span)",
        "is_there = _is_whole(text, *span)",
        "tests/bot/answers/verification/test_quotes.py::test_whole_words_at_an_offset_are_compared",
    ),
    Mutation(
        "a sentence may name numbers that no source states",
        "bot/answers/generation/entailment.py",
        "missing += unsupported(sentence.text, [text for one in marks for text in one.sources()])",
        "missing += []",
        "tests/bot/answers/generation/test_entailment.py::test_numbers_elsewhere_do_not_support_a_claim",
    ),
    Mutation(
        "a model's sentence in words of its own is shown unjudged",
        VERIFIER,
        "if one.is_quote or is_supported:",
        "if one:",
        f"{VERIFIER_TESTS}::test_paraphrases_are_judged_and_supported_ones_shown",
    ),
    Mutation(
        "a judge may bear out a number that no quote states",
        VERIFIER,
        "missing = [*unsupported(text, [*sources, asked]), ",
        "missing = [",
        f"{VERIFIER_TESTS}::test_a_false_fact_is_refused_without_the_judge",
    ),
    Mutation(
        "a model may ask the reader for what no quote asks for",
        VERIFIER,
        "if makes_unsupported_request(",
        "if [] and makes_unsupported_request(",
        f"{VERIFIER_TESTS}::test_a_false_fact_is_refused_without_the_judge",
    ),
    Mutation(
        "a drawn page that is sent behind its PDF's removal stays in the store",
        "storage/files/blobs.py",
        "if not self.exists(sha256 := picture.name[:64]):",
        "if not (sha256 := picture.name[:64]):",
        "tests/storage/files/test_shared_blobs.py::test_page_images_are_deleted_with_their_content",
    ),
    Mutation(
        "a link opens for ever",
        "bot/answers/citations/signed_links.py",
        "claims.expires <= self.clock().timestamp()",
        "claims.expires <= 0",
        "tests/bot/answers/citations/test_signed_links.py::test_a_link_expires",
    ),
    Mutation(
        "a link to a figure's picture opens its document",
        "bot/answers/citations/signed_links.py",
        "head != [_FORMAT, key.id, purpose, Audience.BEARER]:",
        "(*head[:2], head[3]) != (_FORMAT, key.id, Audience.BEARER):",
        "tests/bot/web/test_figure_images.py::test_page_and_image_links_are_not_interchangeable",
    ),
    Mutation(
        "an old answer is written over a new one with its pictures",
        "bot/platforms/slack/messenger.py",
        "        await renew()\n",
        "",
        "tests/bot/platforms/slack/test_slack_messenger.py::test_figures_are_attached_only_while_the_lease_is_held",
    ),
    Mutation(
        "a link opens though its channel's links were revoked",
        LINKS_OPENED,
        "if channel.epoch != claims.epoch:",
        "if not channel:",
        f"{VIEWER_TESTS}::test_raising_the_channels_epoch_ends_its_links_at_once",
    ),
    Mutation(
        "the console answers under a name that a foreign page gave it",
        "bot/web/security.py",
        " or not is_loopback_host(named):",
        ":",
        "tests/bot/web/test_console.py::test_a_rebound_host_name_is_refused",
    ),
    Mutation(
        "an old recording of a request by Slack is taken",
        "bot/platforms/slack/listeners/signature.py",
        "if abs(now - int(stamps[0])) > WINDOW:",
        "if int(stamps[0]) < 0:",
        "tests/bot/platforms/slack/test_slack_signature.py::test_an_old_recording_is_not_even_parsed",
    ),
    Mutation(
        "what somebody says to somebody else in a thread is answered",
        "bot/platforms/slack/events.py",
        'return is_reply and not _OTHERS.search(str(event.get("text") or ""))',
        "return is_reply",
        "tests/bot/platforms/slack/test_slack_events.py::test_messages_to_others_and_by_bots_are_no_follow_ups",
    ),
    Mutation(
        "a reply in any thread is answered",
        "bot/chat/conversation/conversation.py",
        "if message.is_unaddressed and not await",
        "if not message.is_unaddressed and not await",
        "tests/bot/chat/conversation/test_conversation.py"
        "::test_an_unaddressed_message_asks_only_in_our_threads",
    ),
    Mutation(
        "a question's button asks in whatever channel it is clicked",
        "bot/platforms/slack/question_buttons.py",
        'if not text or action.get("block_id") != _BLOCK.format(place=number, tenant=key.tenant):',
        "if not text:",
        "tests/bot/platforms/slack/test_question_buttons.py::test_a_click_from_another_place_asks_nothing",
    ),
    Mutation(
        "a link is previewed in any channel",
        "bot/platforms/slack/surfaces/link_previews.py",
        "if one is not None and one.tenant == shared.key.tenant",
        "if one is not None",
        "tests/bot/platforms/slack/test_link_previews.py::test_only_links_of_the_channel_itself_are_previewed",
    ),
    Mutation(
        "a channel takes the place of another one that has documents",
        "storage/chat/channels.py",
        "if target.tenant != new.tenant or await _has_documents(session, target.id):",
        "if target.tenant != new.tenant:",
        "tests/storage/chat/test_channel_moves.py::test_a_target_with_documents_is_refused_and_audited",
    ),
    Mutation(
        "an outsider of a shared channel is told why",
        "bot/platforms/slack/feedback_buttons.py",
        "if is_outsider(payload) or not all(map(SLACK_ID.fullmatch, (installation, channel, user))):",
        "if not all(map(SLACK_ID.fullmatch, (installation, channel, user))):",
        "tests/bot/platforms/slack/test_feedback_buttons.py::test_a_click_from_another_place_is_ignored",
    ),
    Mutation(
        "a private answer may be shared again and again",
        "bot/platforms/slack/listeners/shared_answers.py",
        "if not await slack.service.set_shared(message_key, is_shared=True):",
        "if await slack.service.set_shared(message_key, is_shared=True) is None:",
        "tests/bot/platforms/slack/test_sharing.py::test_however_often_it_is_clicked_an_answer_is_shared_once",
    ),
    Mutation(
        "any message of ours in a thread is taken for a stream that was lost",
        "bot/platforms/slack/answer_streams.py",
        'is_free = not message.get("metadata") and message["ts"] not in taken',
        'is_free = message["ts"] not in taken',
        "tests/bot/platforms/slack/test_answer_streams.py::test_other_messages_of_the_thread_are_no_lost_stream",
    ),
    Mutation(
        "two questions of a thread take the same stream",
        "storage/chat/inbox.py",
        "if STREAM_KEY in message and not await _is_free(session, item, message):",
        "if STREAM_KEY in message and False:",
        "tests/bot/platforms/slack/test_stream_recovery.py::test_a_stream_of_a_live_process_may_be_claimed_by_another",
    ),
    Mutation(
        "whoever answers a stopped question goes on with it",
        "storage/chat/inbox.py",
        "revoke(row)\n                row.attempts",
        "row.lease_owner = row.lease_until = None\n                row.attempts",
        "tests/bot/chat/conversation/test_conversation.py::test_a_question_in_another_process_is_stopped_too",
    ),
    Mutation(
        "an installation that nobody began here is finished",
        "bot/platforms/slack/installations/installation_store.py",
        'is_ours = hmac.compare_digest(self._mac(body).encode(), mac.encode(errors="replace"))',
        "is_ours = bool(mac)",
        "tests/bot/platforms/slack/installations/test_oauth_flow.py::test_forged_missing_and_foreign_states_are_refused",
    ),
    Mutation(
        "a workspace's token serves whichever row it was moved to",
        "bot/platforms/slack/installations/token_cipher.py",
        'if held["installation"] != installation:',
        'if held["installation"] == "":',
        "tests/bot/platforms/slack/installations/test_token_rotation.py"
        "::test_an_encrypted_token_opens_for_its_own_installation_only",
    ),
    Mutation(
        "a token is renewed by all who need it",
        "storage/installations/slack_installations.py",
        "self._rows.is_free(), *_unchanged(held)",
        "*_unchanged(held)",
        "tests/bot/platforms/slack/installations/test_token_rotation.py::test_concurrent_callers_refresh_a_token_once",
    ),
    Mutation(
        "the bot token goes to any host that a file is said to lie on",
        "bot/platforms/slack/workspace/shared_files.py",
        "if not is_slacks(url, self._api_url):",
        "if not url:",
        "tests/bot/platforms/slack/test_shared_files.py::test_no_redirect_and_no_foreign_address_gets_the_token",
    ),
    Mutation(
        "anybody may remove an upload",
        "bot/chat/commands/upload_commands.py",
        "if not self._may_remove(question.asker, upload):",
        "if upload.id < 0:",
        "tests/bot/chat/commands/test_upload_commands.py::test_other_people_cannot_remove_an_upload",
    ),
    Mutation(
        "a home's button asks a channel that its person has left",
        "bot/platforms/slack/surfaces/app_home.py",
        "if await self._memberships.is_member(message.key, visit.user):",
        "if visit.user:",
        "tests/bot/platforms/slack/test_app_home.py::test_a_click_asks_only_a_channel_that_the_person_is_in_now",
    ),
    Mutation(
        "anybody may share what somebody else asked privately",
        "bot/platforms/slack/private_questions.py",
        'return is_private(address) and (clicker, channel) == (address["asked"]["user"], address["channel"])',
        "return is_private(address)",
        "tests/bot/platforms/slack/test_private_questions.py::test_only_the_asker_may_share_and_only_where_it_was_asked",
    ),
    Mutation(
        "doctor prints the password of a URL",
        "bot/operations/doctor/report.py",
        "redactor.clean(one.text)",
        "one.text",
        "tests/bot/operations/doctor/test_doctor.py::test_the_report_contains_no_secret",
    ),
    Mutation(
        "whoever comes through a proxy reads the metrics",
        "bot/web/metrics_page.py",
        "require_loopback(request)",
        "assert request.host",
        "tests/bot/operations/metrics/test_metrics.py::test_on_the_console_port_only_localhost_reads_metrics",
    ),
    Mutation(
        "whoever is on this machine uses the console",
        "bot/web/security.py",
        "        raise ConsoleLocked\n",
        "        pass\n",
        "tests/bot/web/test_console_secret.py::test_no_question_is_asked_without_it",
    ),
    Mutation(
        "an entry of the audit may be changed",
        "storage/sql/audit.py",
        "if entry.digest != digest_of(entry):",
        "if not entry.digest:",
        "tests/storage/sql/test_audit_chain.py::test_tampering_with_the_table_is_detected",
    ),
    Mutation(
        "a revoked link opens",
        "bot/web/link_verification.py",
        "if citation is not None and citation.revoked_at is not None:",
        "if citation is not None and citation.id < 0:",
        "tests/bot/web/test_revoked_links.py::test_the_links_of_one_answer_end_and_no_others",
    ),
    Mutation(
        "half a request is waited for",
        "bot/web/connections.py",
        "now - self._head_began > limits.head_seconds",
        "now - self._head_began > 3600",
        "tests/bot/web/test_connections.py::test_an_incomplete_request_times_out",
    ),
    Mutation(
        "a place that is back goes on being asked about",
        "ingestion/watch/deletions.py",
        "return frozenset() if documents <= asked and not documents <= away else frozenset(asked)",
        "return frozenset(asked)",
        "tests/ingestion/watch/test_deletions.py::test_a_pending_deletion_of_a_whole_location_ends_on_return",
    ),
    Mutation(
        "a lease of a wrong clock is waited for",
        LEASES,
        "_is_past(self._until, timedelta(seconds=2 * self.seconds))",
        "_is_past(self._until, timedelta(days=1))",
        "tests/storage/queues/test_reading_queue.py::test_leases_and_delays_from_a_fast_clock_are_ignored",
    ),
    Mutation(
        "what a wrong clock put off is waited for",
        LEASES,
        "_is_past(col(table.next_attempt_at), MAX_WAIT)",
        "_is_past(col(table.next_attempt_at), timedelta(days=1))",
        "tests/storage/queues/test_reading_queue.py::test_leases_and_delays_from_a_fast_clock_are_ignored",
    ),
    Mutation(
        "nobody is told of an outage that lasts",
        "bot/web/readiness.py",
        "part: outage if moment - begun >= self._seconds else None",
        "part: None",
        "tests/bot/chat/notifications/test_outage_notices.py"
        "::test_an_outage_of_a_minute_is_announced_with_its_end",
    ),
    Mutation(
        "a silent database server is waited for",
        "storage/sql/postgres.py",
        "if not await self._is_alive():",
        "if False:",
        "tests/storage/sql/test_postgres.py::test_a_hung_server_is_an_outage_within_seconds",
    ),
    Mutation(
        "serve takes connections before it can answer",
        "bot/server_socket.py",
        "self.socket.bind((self._host, self._port))",
        "self.socket.bind((self._host, self._port)); self.socket.listen()",
        "tests/bot/test_server_socket.py::test_connections_before_the_server_listens_are_refused",
    ),
    Mutation(
        "a question is answered from an index that is being built anew",
        "storage/index/live_index.py",
        "if rebuilds % 2 or rebuilds != await self._live_set.rebuild_count(asked.channel.id):",
        "if False:",
        "tests/storage/index/test_live_index.py::test_no_query_is_answered_during_a_rebuild",
    ),
    Mutation(
        "an erased document's words stay in Weaviate's files",
        "storage/erasure/eraser.py",
        "await self._index.drop_tenant(channel.tenant)",
        "pass",
        "tests/storage/erasure/test_eraser.py::test_an_index_that_keeps_deleted_words_is_rebuilt_on_request",
    ),
    Mutation(
        "a worker that looks while an index is dropped ends its rebuild",
        "storage/erasure/eraser.py",
        "if report.reindexed:  # once more",
        "if False:  # once more",
        "tests/storage/erasure/test_eraser.py::test_a_rebuild_is_not_ended_before_the_index_is_dropped",
    ),
)
