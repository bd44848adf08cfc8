from kvtier_operator.runtime.process import relevant_lines

# From vLLM 0.32 on a CPU, shortened in the middle of its tracebacks.
BLOCK_SIZE = """\
(MainProcess pid=23164) WARNING 11-21 00:38:47 [cpu.py:224] Triton is not installed.
Loading safetensors checkpoint shards: 100% Completed | 1/1 [00:00<00:00,  1.96it/s]
(Worker pid=23632) ERROR 11-21 00:39:40 [multiproc_executor.py:1063] WorkerProc hit an exception.
(Worker pid=23632) ERROR 11-21 00:39:40 [multiproc_executor.py:1063] Traceback (most recent call last):
(Worker pid=23632) ERROR 11-21 00:39:40 [multiproc_executor.py:1063]   File "x.py", line 1, in worker_main
(Worker pid=23632) ERROR 11-21 00:39:40 [multiproc_executor.py:1063]     raise ValueError(
(Worker pid=23632) ERROR 11-21 00:39:40 [multiproc_executor.py:1063] ValueError: No common block size for 16.
(EngineCore pid=23447) ERROR 11-21 00:39:40 [core.py:1510] RuntimeError: Worker failed with error \
'No common block size for 16.', please check the stack trace above for the root cause
Traceback (most recent call last):
  File "x.py", line 2, in <module>
RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}
"""


def test_the_root_error_without_tracebacks_and_consequences() -> None:
    assert relevant_lines(BLOCK_SIZE) == ["ValueError: No common block size for 16."]


def test_a_refused_argument() -> None:
    log = "usage: api_server.py [-h]\n  [--x X]\napi_server.py: error: unrecognized arguments: --nope\n"
    assert relevant_lines(log) == ["api_server.py: error: unrecognized arguments: --nope"]


def test_the_lines_that_belong_to_a_pydantic_error() -> None:
    log = (
        "Traceback (most recent call last):\n"
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig\n"
        "  Value error, User-specified max_model_len (99) is greater than derived. [type=value_error]\n"
        "    For further information visit https://errors.pydantic.dev/2/v/value_error\n"
    )
    assert relevant_lines(log) == log.splitlines()[1:3]


def test_shared_memory_that_is_full() -> None:
    log = (
        "(EngineCore pid=1) OSError: [Errno 28] No space left on device: '/psm_1'\nINFO 1-1 1:1:1 [a:1] bye\n"
    )
    assert relevant_lines(log) == ["OSError: [Errno 28] No space left on device: '/psm_1'"]


def test_a_process_that_was_killed() -> None:
    assert relevant_lines("loading\nBus error (core dumped)\n") == ["Bus error (core dumped)"]


def test_error_lines_where_there_is_no_exception() -> None:
    log = (
        "INFO 11-21 00:00:00 [a.py:1] start\n(X pid=1) ERROR 11-21 00:00:01 [b.py:2] it went wrong\nthe end\n"
    )
    assert relevant_lines(log) == ["it went wrong"]


def test_the_last_lines_where_there_is_no_error() -> None:
    log = "".join(f"line {number}\n" for number in range(20))
    assert relevant_lines(log, limit=3) == ["line 17", "line 18", "line 19"]


def test_nothing_from_nothing() -> None:
    assert relevant_lines("") == []
