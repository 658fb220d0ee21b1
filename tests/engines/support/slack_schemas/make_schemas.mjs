// Writes to stdout a JSON schema of the arguments of each method that we call, made from Slack's own types.
import { createGenerator } from "ts-json-schema-generator";

const ARGUMENTS = {
  "agents.sessions.rename": "AgentsSessionsRenameArguments",
  "agents.sessions.setStatus": "AgentsSessionsSetStatusArguments",
  "apps.manifest.validate": "AppsManifestValidateArguments",
  "assistant.threads.setSuggestedPrompts": "AssistantThreadsSetSuggestedPromptsArguments",
  "chat.appendStream": "ChatAppendStreamArguments",
  "chat.delete": "ChatDeleteArguments",
  "chat.postEphemeral": "ChatPostEphemeralArguments",
  "chat.postMessage": "ChatPostMessageArguments",
  "chat.startStream": "ChatStartStreamArguments",
  "chat.stopStream": "ChatStopStreamArguments",
  "chat.unfurl": "ChatUnfurlArguments",
  "chat.update": "ChatUpdateArguments",
  "conversations.history": "ConversationsHistoryArguments",
  "conversations.info": "ConversationsInfoArguments",
  "conversations.replies": "ConversationsRepliesArguments",
  "files.completeUploadExternal": "FilesCompleteUploadExternalArguments",
  "files.delete": "FilesDeleteArguments",
  "files.getUploadURLExternal": "FilesGetUploadURLExternalArguments",
  "files.info": "FilesInfoArguments",
  "oauth.v2.access": "OAuthV2AccessArguments",
  "users.conversations": "UsersConversationsArguments",
  "users.info": "UsersInfoArguments",
  "views.open": "ViewsOpenArguments",
  "views.publish": "ViewsPublishArguments",
};

const generator = createGenerator({
  path: "node_modules/@slack/web-api/dist/types/request/index.d.ts",
  skipTypeCheck: true,
  jsDoc: "none",
  topRef: false,
});

function schemaOf(type) {
  const schema = generator.createSchema(type);
  // Slack's methods take "KnownBlock | Block", and a Block is anything with a type: here known ones alone are.
  if (schema.definitions?.Block) schema.definitions.Block = false;
  return schema;
}

const schemas = Object.entries(ARGUMENTS).map(([method, type]) => [method, schemaOf(type)]);
process.stdout.write(JSON.stringify(Object.fromEntries(schemas)));
