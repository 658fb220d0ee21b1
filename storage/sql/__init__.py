"""The two engines that can keep our tables: what ``storage.database`` opens, chosen by the URL."""
