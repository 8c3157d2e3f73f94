"""``python -m tests.mutation [MODULE ...]``: change the product in small ways; report the changes no test detects."""
