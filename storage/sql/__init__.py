"""The two engines that can keep our tables: what ``storage.sql.database`` opens, chosen by the URL."""
