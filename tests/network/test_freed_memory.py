import platform
import subprocess
import sys

import pytest

MESSAGE_BYTES = 1 << 20

COUNT_FAULTS = f"""
import resource
from kproto_server.network.freed_memory import FreedMemory

def page_faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        parts = [b"x" * ({MESSAGE_BYTES} // 4 + n) for n in range(4)]
        body = b"".join(parts)
        frame = b"head" + body
        del parts, body, frame
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

kept = FreedMemory()
kept.keep_for(0)
print(page_faults())
kept.keep_for({MESSAGE_BYTES})
page_faults()
print(page_faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc keeps freed memory in this way")
def test_large_messages_need_no_new_pages_after_the_first() -> None:
    result = subprocess.run([sys.executable, "-c", COUNT_FAULTS], capture_output=True, text=True, check=True)
    before, after = map(int, result.stdout.split())
    assert before > 1000, "the memory of each message came from the kernel again"
    assert after < before / 100
