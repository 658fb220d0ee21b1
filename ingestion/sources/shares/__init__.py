"""Watched folders on other machines: S3, SFTP, SMB, WebDAV, anything fsspec reaches."""
