"""Settings of remote shares: timeout and accounts."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from ingestion.sources.shares.address import ShareAddress
from storage.settings import Address, AwsSettings


class ShareAccount(BaseModel):
    """Credentials of one server."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    user: str | None = None
    password: SecretStr | None = None
    token: SecretStr | None = None
    key: Path | None = None
    endpoint: Address | None = None


class ShareSettings(AwsSettings):
    """Settings of remote shares; credentials belong here, never in the folder map."""

    free_text_secrets: ClassVar[frozenset[str]] = frozenset(
        {"sftp_password", "sftp_key_passphrase", "smb_password", "webdav_password"}
    )

    share_timeout: float = Field(
        20.0, ge=1, le=600, description="Seconds a share may be silent before that counts as an outage."
    )
    sftp_user: str | None = Field(None, description="SFTP: user, where the URL names none.")
    sftp_password: SecretStr | None = Field(None, description="SFTP: password; a key is better.")
    sftp_key: Path | None = Field(None, description="SFTP: file with the private key.")
    sftp_key_passphrase: SecretStr | None = Field(None, description="SFTP: passphrase of that key.")
    sftp_known_hosts: Path = Field(
        Path("~/.ssh/known_hosts"),
        description="SFTP: the servers' keys; a server that is not in it is refused.",
    )
    smb_user: str | None = Field(None, description="SMB: user, as name or DOMAIN\\name.")
    smb_password: SecretStr | None = Field(None, description="SMB: password.")
    webdav_user: str | None = Field(None, description="WebDAV: user.")
    webdav_password: SecretStr | None = Field(None, description="WebDAV: password, or an app password.")
    webdav_token: SecretStr | None = Field(None, description="WebDAV: bearer token, instead of both.")
    share_accounts: dict[str, ShareAccount] = Field(
        default_factory=dict,
        description="As JSON: server or bucket -> {user, password, token, key, endpoint} of its own.",
    )

    def account(self, address: ShareAddress) -> ShareAccount:
        """Return the account of this server or bucket, else that of its protocol."""
        if (own := self.share_accounts.get(address.server)) is not None:
            return own
        if address.protocol == "s3":
            return ShareAccount(
                user=self.aws_access_key_id,
                password=self.aws_secret_access_key,
                token=self.aws_session_token,
                endpoint=self.aws_endpoint_url,
            )
        if address.protocol == "sftp":
            return ShareAccount(user=self.sftp_user, password=self.sftp_password, key=self.sftp_key)
        if address.protocol == "smb":
            return ShareAccount(user=self.smb_user, password=self.smb_password)
        return ShareAccount(user=self.webdav_user, password=self.webdav_password, token=self.webdav_token)


def secret(value: SecretStr | None) -> str | None:
    """Return the text of a secret."""
    return None if value is None else value.get_secret_value()
