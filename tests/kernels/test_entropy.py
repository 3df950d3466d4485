"""Where noise comes from: never twice the same, predictable only with a seed."""

import multiprocessing
import os
import threading
import warnings

import numpy as np
import pytest

from fliphat import _native, kernels

V = np.arange(50) * 10

PINNED = {
    "words": [16896319652922222577, 13218629391295596611],
    "laplace": [-87, -333, 180, 447, 834],
    "gaussian": [180, 835, -607, -422, 866],
    "rounded_gaussian": [-431, 1700, 1321, 887, 981],
    "noise": [-0.08779144287109375, -0.33326053619384766, 0.18035221099853516],
    "peel exponential": [[25, 33, 48, 37], [-172, 1196, 704, 1385]],
    "peel laplace": [[42, 39, 11, 9], [985, 358, -967, -2081]],
}


def noise_bytes(_=None):
    """Everything a process can draw, in bytes: equal bytes mean a repeated stream."""
    support, values = kernels.peel(V, 20, pick_scale=100, value_scale=10**6)
    return kernels.laplace(1.0, 4).tobytes() + support.tobytes() + values.tobytes()


def all_differ(draws):
    return len(set(draws)) == len(draws)


def in_forked_child(work):
    """The bytes that ``work`` returns in a child made by os.fork."""
    receive, send = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn if there are threads
        child = os.fork()
    if child == 0:
        try:
            os.write(send, work())
        finally:
            os._exit(0)
    os.close(send)
    with os.fdopen(receive, "rb") as pipe:
        drawn = pipe.read()
    os.waitpid(child, 0)
    return drawn


def test_calls_never_share_a_stream():
    assert all_differ([noise_bytes() for _ in range(200)])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_forked_processes_never_share_a_stream():
    noise_bytes()  # if a generator outlived a call, the children would inherit it
    draws = [in_forked_child(noise_bytes) for _ in range(4)] + [noise_bytes()]
    assert all(draws)
    assert all_differ(draws)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_the_fork_check_rejects_a_generator_that_is_inherited():
    rng = np.random.default_rng()
    draws = [in_forked_child(lambda: rng.laplace(size=4).tobytes()) for _ in range(2)]
    assert not all_differ(draws)


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_worker_processes_never_share_a_stream(method):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        with multiprocessing.get_context(method).Pool(2) as pool:
            draws = pool.map(noise_bytes, range(20), chunksize=1)
    assert all_differ([*draws, noise_bytes()])


def test_threads_never_share_a_stream():
    draws = []
    threads = [
        threading.Thread(target=lambda: draws.extend(noise_bytes() for _ in range(20))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(draws) == 160
    assert all_differ(draws)


def test_public_kernels_take_no_seed():
    for kernel in (kernels.laplace, kernels.laplace_mechanism, kernels.peel):
        with pytest.raises(TypeError):
            kernel(seed=1)


def test_seeded_streams_are_pinned():
    # A change of any of these is a value-breaking changelog entry: seeded experiments depend on them.
    words = np.empty(2, np.uint64)
    _native.seeded_words(words, 1, 0)
    assert words.tolist() == PINNED["words"]
    for sampler in ("laplace", "gaussian", "rounded_gaussian"):
        draws = np.empty(5, np.int64)
        _native.seeded_draw(draws, sampler, 1000, 1)
        assert draws.tolist() == PINNED[sampler]
    noise = np.empty(3)
    _native.laplace_fill(noise, 1.0, seed=1)
    assert noise.tolist() == PINNED["noise"]
    for mechanism in ("exponential", "laplace"):
        support, values = _native.peel(V, 4, 100, 1000, mechanism, "gaussian", seed=1)
        assert [support.tolist(), values.tolist()] == PINNED[f"peel {mechanism}"]


def test_one_seed_has_many_streams():
    def words(seed, stream):
        out = np.empty(4, np.uint64)
        _native.seeded_words(out, seed, stream)
        return out.tobytes()

    assert words(5, 6) == words(5, 6)
    assert all_differ([words(seed, stream) for seed in range(5) for stream in range(5)])
