"""The driver that runs turns on asyncio."""
