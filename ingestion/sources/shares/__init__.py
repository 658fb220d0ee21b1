"""Remote shares: S3, SFTP, SMB, WebDAV, and other protocols of fsspec."""
