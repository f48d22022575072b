#!/usr/bin/env python3
"""Runs the parts of gpu_check.sh one after the other, each with a limit of its
own, and writes what came of them as JSON and as a page.

A part that fails or takes too long ends, and the next one begins.  A figure
that nothing has measured is there, too, with the reason.
"""
import argparse
import array
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import time
import typing

NO_GPU = 3
ALL = 480  # seconds for everything
# Part, and the longest that one of its commands may take.
LIMITS = {'kernels': 120, 'steps': 60, 'peers': 60, 'library': 60, 'sanitizer': 90}
# The longest that all commands of a part may take, so that there is time for the
# parts after it.
BUDGETS = {'steps': 240}

# Batch and sizes of the two steps; noise stands for pictures.
STEPS = {
    'wgan-gp-resnet': ['--width', '128', '--resolution', '32', '--latent', '128', '--batch', '64'],
    'sagan': ['--width', '64', '--resolution', '128', '--latent', '128', '--classes', '1000', '--batch', '16'],
}
LOSSES = {'wgan-gp-resnet': 'wgan-gp', 'sagan': 'hinge'}
# A step on the CPU for comparison takes its time, so its networks are small.
SMALL = {
    'wgan-gp-resnet': ['--width', '32', '--resolution', '32', '--batch', '16'],
    'sagan': ['--width', '8', '--resolution', '64', '--classes', '5', '--batch', '8'],
}
# Few enough that the 22 runs of steps fit in their budget.
TIMED = ['--steps', '20']
# gossamer's step, and PyTorch's in eager mode.  Both have cuDNN's heuristic mode
# B and no TF32.
GOSSAMER = {
    'graph': ['--deterministic', 'on', '--graphs', 'on', '--bits', '--edge'],
    'no_graph': ['--deterministic', 'on', '--graphs', 'off', '--bits'],
    'graph_nondeterministic': ['--deterministic', 'off', '--graphs', 'on'],
    'graph_bf16': ['--deterministic', 'on', '--graphs', 'on', '--precision', 'bf16'],
    'graph_bf16_nondeterministic': ['--deterministic', 'off', '--graphs', 'on', '--precision', 'bf16'],
}
EAGER = {
    'eager': ['--deterministic', 'on'],
    'eager_nondeterministic': ['--deterministic', 'off'],
    'eager_bf16': ['--deterministic', 'on', '--precision', 'bf16'],
    'eager_bf16_nondeterministic': ['--deterministic', 'off', '--precision', 'bf16'],
}
# Rows of the one over the other: gossamer's run, PyTorch's, and whether there
# is a goal.
STEP_ROWS = (
    ('step with a graph over eager PyTorch, both deterministic', 'graph', 'eager', True),
    ('step with a graph over eager PyTorch, neither deterministic', 'graph_nondeterministic', 'eager_nondeterministic',
     True),
    ('step without a graph over eager PyTorch, both deterministic', 'no_graph', 'eager', False),
    ('step with a graph over eager PyTorch in bf16, both deterministic', 'graph_bf16', 'eager_bf16', False),
    ('step with a graph over eager PyTorch in bf16, neither deterministic', 'graph_bf16_nondeterministic',
     'eager_bf16_nondeterministic', False),
)
# A gradient may differ from the CPU's by this, or by so many times what the last
# bits of the parameters make on the CPU alone: no smaller distance means anything.
GRADIENTS_OFF, ROUNDINGS = 1e-4, 2
GRADIENTS_RULE = '≤ 1e-4 or 2 × rounding alone'
# Further off a gradient is wrong, and not rounded another way.  gpu_step fails
# beyond it, too.
GRADIENTS_WRONG = 1e-2
# The tests of kernels_test that run on a GPU: of the functions that the host has
# as well, and of those that a device has alone.
DEVICE_TESTS = ('Tables/KernelsTest.*/CUDA*', 'Alignments/DeviceOnlyTest.*')
PEERS = '''peers: 4
rounds: 300
algorithm: "{algorithm}"
{mixing}
game {{ gan {{ model: "mlp" width: 512 latent: 16 batch: 64 data {{ name: "gaussian-mixture" }} }} }}
evaluation {{ every: 0 samples: 256 }}
resources {{ device: "cuda:0" fabric: "gpu-check" }}
transport: "{transport}"
'''
MIXING = {
    'dp-oadam': 'mixing { graph: "ring" codec: "innov-int4" overlap_steps: steps_1 }',
    'cp-oadam': '',
}


def end(process):
    """Ends a command that took too long.  The first signal has a fleet's launcher stop its peers, which are in
    sessions of their own, the second one end them.
    """
    for seconds in (5, 20):
        process.terminate()
        try:
            process.wait(seconds)
            break
        except subprocess.TimeoutExpired:
            pass
    # The rest of its session.
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


class Check:
    """The commands of all parts, and what is known so far."""

    def __init__(self, arguments):
        self.a = arguments
        self.began = self.part_began = time.monotonic()
        self.parts = {name: {'state': 'not measured', 'why': 'not asked for'} for name in LIMITS}
        self.environment = dict(os.environ, LD_LIBRARY_PATH=arguments.libraries)
        self.gpus = gpus()

    def program(self, name):
        return os.path.join(self.a.bin, name)

    def limit(self, part, name):
        """The seconds that a command, or a fleet, of this name may take."""
        now = time.monotonic()
        left = min(ALL - (now - self.began), BUDGETS.get(part, ALL) - (now - self.part_began))
        if left < 5:
            raise Failure(f'no time was left for {name}')
        return min(LIMITS[part], left)

    def run(self, part, name, command, result=None):
        """Runs a command into a log and returns its JSON file, if it is to leave one."""
        limit = self.limit(part, name)
        log = os.path.join(self.a.out, f'{part}-{name}.log')
        if result and os.path.exists(result):
            os.remove(result)
        with open(log, 'wb') as out:
            out.write((' '.join(command) + '\n').encode())
            out.flush()
            try:
                # In a session of its own, so that children end with it.
                process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=self.environment,
                                           start_new_session=True)
            except OSError as e:
                raise Failure(f'{name} does not start: {e}')
            try:
                code = process.wait(limit)
            except subprocess.TimeoutExpired:
                end(process)
                raise Failure(f'{name} took more than {limit:.0f} s; see {log}')
        if code != 0:
            raise Failure(f'{name} ended with {code}: {last_line(log)}')
        if result is None:
            return None
        try:
            with open(result) as f:
                return json.load(f)
        except (OSError, ValueError) as e:
            raise Failure(f'{name} left no result: {e}')

    def attempt(self, into, key, part, name, command, result=None):
        """The same, with a failure as part of the result."""
        try:
            into[key] = self.run(part, name, command, result) or {}
        except Failure as e:
            into[key] = {'failed': str(e)}

    def file(self, name):
        return os.path.join(self.a.out, name)

    def kernels(self):
        result = self.file('kernels.json')
        return self.run('kernels', 'gpu_kernels', [self.program('gpu_kernels'), '--json', result], result)

    def steps(self):
        all_steps = {}
        for model, sizes in STEPS.items():
            of = all_steps[model] = {}

            def step(key, program, arguments, of=of, model=model):
                result = self.file(f'{model}-{key}.json')
                self.attempt(of, key, 'steps', f'{model}-{key}',
                             [*program, '--model', model, *arguments, '--json', result], result)

            gossamer = [self.program('gpu_step'), '--loss', LOSSES[model]]
            for key, arguments in GOSSAMER.items():
                step(key, gossamer, [*sizes, *TIMED, *arguments])
            # Its user would take the layout that is faster, as the program does.
            eager = [sys.executable, os.path.join(self.a.scripts, 'eager_step.py')]
            for key, arguments in EAGER.items():
                step(key, eager, [*sizes, *TIMED, *arguments])
                known = 'parameters' in of['graph'] and 'parameters' in of[key]
                if known and of['graph']['parameters'] != of[key]['parameters']:
                    of[key] = {'failed': f'its networks have {of[key]["parameters"]} parameters, '
                                         f'not {of["graph"]["parameters"]}'}
            step('compared', gossamer, [*SMALL[model], '--compare', '--steps', '1'])
            step('again', gossamer, [*SMALL[model], '--compare', '--steps', '1'])
        return all_steps

    def peers(self):
        """Fleets of four peers on one GPU: by gRPC; and by NCCL, whose ranks believe to be on machines of their own,
        since it takes one rank a GPU and machine.  The gossip over NCCL repeats what the peers over gRPC have decided
        by the clock, so its parameters must be the same to the bit.
        """
        fleets = {}
        for algorithm in MIXING:
            for transport in ('grpc', 'nccl'):
                name = f'{algorithm}-{transport}'
                replay = f'{algorithm}-grpc' if transport == 'nccl' and algorithm == 'dp-oadam' else ''
                try:
                    fleets[name] = self.fleet(name, algorithm, transport, replay)
                except Failure as e:
                    fleets[name] = {'failed': str(e)}
            of = [fleets.get(f'{algorithm}-{transport}', {}).get('parameters') for transport in ('grpc', 'nccl')]
            if all(of):
                fleets[f'{algorithm}-nccl']['distance_to_grpc'] = max(map(distance, *of))
                fleets[f'{algorithm}-nccl']['equal_at_all'] = all(of[1][0] == x for x in of[1])
        for fleet in fleets.values():
            fleet.pop('parameters', None)
        return fleets

    def fleet(self, name, algorithm, transport, replay):
        """Runs one as peers of their own, which a topology service joins."""
        limit = self.limit('peers', name)
        folder = self.file(name)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        config, port = (os.path.join(folder, file) for file in ('config.textproto', 'port'))
        with open(config, 'w') as f:
            f.write(PEERS.format(algorithm=algorithm, mixing=MIXING[algorithm], transport=transport))
        began = time.monotonic()
        processes = {}

        def start(who, command, **environment):
            with open(self.file(f'peers-{name}-{who}.log'), 'wb') as log:
                processes[who] = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT,
                                                  env=dict(self.environment, **environment))

        try:
            start('topology', [self.program('gossamer-topology'), '--config', config, '--set', f'name={name}',
                               '--listen', '127.0.0.1:0', '--port-file', port, '--state', folder + '/topology',
                               '--exit-when-finished'])
            def ready():
                return os.path.exists(port) and os.path.getsize(port) > 0

            while not ready() and processes['topology'].poll() is None and time.monotonic() - began < limit:
                time.sleep(0.05)
            if not ready():
                raise Failure(f'{name}: no topology service: {last_line(self.file(f"peers-{name}-topology.log"))}')
            with open(port) as f:
                address = f'127.0.0.1:{f.read().strip()}'
            for peer in range(1, 5):
                start(f'peer-{peer}', [self.program('gossamer-peer'), '--topology', address, '--config', config, '--set',
                                       f'name={name}', '--id', str(peer), '--run-dir', folder] +
                      (['--replay', f'{self.file(replay)}/peer-{peer}/decisions.log'] if replay else []),
                      NCCL_HOSTID=f'gpu-check-{peer}', NCCL_DEBUG='WARN')
            for who, process in processes.items():
                try:
                    code = process.wait(max(1, limit - (time.monotonic() - began)))
                except subprocess.TimeoutExpired:
                    raise Failure(f'{name} took more than {limit:.0f} s')
                if code != 0:
                    raise Failure(f'{name}: {who} ended with {code}: {last_line(self.file(f"peers-{name}-{who}.log"))}')
        except OSError as e:
            raise Failure(f'{name}: {e}')
        finally:
            for process in processes.values():
                process.kill()
                process.wait()
        seconds = time.monotonic() - began
        payloads = 0
        for peer in range(1, 5):
            with open(self.file(f'peers-{name}-peer-{peer}.log'), errors='replace') as log:
                payloads += sum(int(n) for n in re.findall(r'NCCL brought (\d+)', log.read()))
        return {'peers': 4, 'rounds': 300, 'seconds': seconds, 'payloads_by_nccl': payloads,
                'without_means_by_nccl': [peer for peer in range(1, 5) if not means_by_nccl(f'{folder}/peer-{peer}')],
                'parameters': [parameters(f'{folder}/peer-{peer}') for peer in range(1, 5)]}

    def library(self):
        """Two programs of PyTorch as peers: their parameters mixed on the GPU, and by copies in the host's memory."""
        package = os.path.join(self.a.package, 'gossamer')
        if not os.path.isdir(package):
            raise NotMeasured(f'{package} is not there')
        paths = [self.a.package, *filter(None, [self.environment.get('PYTHONPATH')])]
        self.environment.update(PYTHONPATH=':'.join(paths), GOSSAMER_BIN=os.path.abspath(self.a.bin),
                                GOSSAMER_LIBRARY=os.path.abspath(self.program('../lib/libgossamer.so')))
        folder = self.file('library')
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        program = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'gpu_library.py')
        places = {}
        for place in ('in-place', 'by-host'):
            self.attempt(places, place, 'library', place,
                         [sys.executable, '-m', 'gossamer.run', '--peers', '2', '--run-dir', f'{folder}/{place}',
                          '--set', 'rounds=40', '--set', 'mixing.overlap_steps=0', program, folder, place])
            if 'failed' in places[place]:
                continue
            places[place] = {}
            for peer in (1, 2):
                with open(os.path.join(folder, f'{place}-{peer}.json')) as f:
                    places[place][f'peer-{peer}'] = json.load(f)
        return places

    def sanitizer(self):
        tool = shutil.which('compute-sanitizer') or '/usr/local/cuda/bin/compute-sanitizer'
        if not os.path.exists(tool):
            raise NotMeasured('there is no compute-sanitizer')
        # The device's kernels alone: the tool is a hundred times slower.
        self.run('sanitizer', 'gpu_kernels',
                 [tool, '--error-exitcode', '9', self.program('gpu_kernels'), '--megabytes', '1',
                  '--gtest_filter=' + ':'.join(DEVICE_TESTS)])
        with open(os.path.join(self.a.out, 'sanitizer-gpu_kernels.log')) as log:
            text = log.read()
        for suite in (pattern.split('.')[0] for pattern in DEVICE_TESTS):
            if f' from {suite}' not in text:
                raise Failure(f'the sanitizer ran no test of {suite}')
        return {'errors': 0}

    def all(self, only):
        wanted = [name for name in LIMITS if not only or name in only]
        for name in wanted:
            self.parts[name]['why'] = 'not come to yet'
        for name in wanted:
            self.part_began = time.monotonic()
            try:
                self.parts[name] = {'state': 'measured', 'result': getattr(self, name)()}
            except NotMeasured as e:
                self.parts[name] = {'state': 'not measured', 'why': str(e)}
            except Failure as e:
                self.parts[name] = {'state': 'failed', 'why': str(e)}
            except Exception as e:  # the other parts are worth their minutes
                self.parts[name] = {'state': 'failed', 'why': f'{type(e).__name__}: {e}'}
            if failures(self.parts[name].get('result')):
                self.parts[name]['state'] = 'failed in part'
            self.write()

    def write(self):
        """What is known so far: the machine may be taken away."""
        rows = figures(self.parts)
        with open(self.file('gpu_check.json'), 'w') as f:
            json.dump({'gpus': self.gpus, 'seconds': round(time.monotonic() - self.began, 1),
                       'parts': self.parts, 'figures': [row._asdict() for row in rows]},
                      f, indent=1, ensure_ascii=False)
        text = page(self.gpus, rows, self.parts)
        with open(self.file('gpu_check.md'), 'w') as f:
            f.write(text)
        return rows, text


class Failure(Exception):
    """A command that failed, with the reason."""


class NotMeasured(Exception):
    """A part that this machine lacks something for."""


class Row(typing.NamedTuple):
    """A figure."""
    what: str
    to_reach: str
    measured: str
    reached: typing.Optional[bool]  # None: there is nothing to hold it against
    must_hold: bool  # the check fails if it is missed: a speed may be, and nothing may be wrong


def last_line(log):
    with open(log, errors='replace') as text:
        return ([''] + [line.strip() for line in text if line.strip()])[-1]


def parameters(folder):
    """A peer's parameters from its last checkpoint."""
    try:
        last = max(os.listdir(f'{folder}/checkpoints'), key=lambda name: int(name.split('-')[1]))
        with open(f'{folder}/checkpoints/{last}/state.safetensors', 'rb') as f:
            size, = struct.unpack('<Q', f.read(8))
            begin, end = json.loads(f.read(size))['parameters']['data_offsets']
            f.seek(8 + size + begin)
            return array.array('f', f.read(end - begin))
    except (OSError, ValueError, KeyError) as e:
        raise Failure(f'{folder} has no parameters: {e}')


def means_by_nccl(folder):
    """Whether a peer's means came by NCCL to the end: after a failure they travel by gRPC, and the run goes on."""
    try:
        with open(f'{folder}/events.jsonl') as f:
            events = [json.loads(line) for line in f if line.strip()]
    except (OSError, ValueError):
        return False
    ready = any(e['kind'] == 'nccl_ready' and 'for means' in e['detail'] for e in events)
    return ready and all(e['kind'] != 'nccl_broken' for e in events)


def distance(a, b):
    """|a - b| / |b|"""
    return (sum((x - y) ** 2 for x, y in zip(a, b)) / sum(y * y for y in b)) ** 0.5


def failures(result):
    if not isinstance(result, dict):
        return []
    if 'failed' in result:
        return [result['failed']]
    return [f for value in result.values() for f in failures(value)]


def gpus():
    """Lines of nvidia-smi, or none."""
    try:
        done = subprocess.run(['nvidia-smi', '-L'], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [line for line in done.stdout.splitlines() if line.startswith('GPU ')] if done.returncode == 0 else []


def figures(parts):
    """The rows of all parts."""

    def why(part):
        return parts[part].get('why', 'it failed')

    rows = []
    kernels = parts['kernels'].get('result')
    if kernels is None:
        rows.append(Row('bits of the kernels', 'equal', f'not measured: {why("kernels")}', None, True))
        rows.append(Row('kernels over a copy within the device', '≥ 0.8', f'not measured: {why("kernels")}', None, False))
    else:
        rows.append(Row('bits of the kernels', 'equal', kernels['bits'], kernels['bits'] == 'equal', True))
        for k in kernels['kernels']:
            wanted = k['name'] in ('encode int8', 'apply int8', 'encode int4', 'apply int4', 'oadam')
            rows.append(Row(f'{k["name"]} over a copy', '≥ 0.8' if wanted else '',
                            f'{k["of_copy"]:.2f} ({k["gb_per_s"]:.0f} GB/s)', k['of_copy'] >= 0.8 if wanted else None,
                            False))
    steps = parts['steps'].get('result')
    for model, limit in (('wgan-gp-resnet', 0.5), ('sagan', 0.9)):
        of = (steps or {}).get(model, {})

        def value(key, field, of=of):
            got = of.get(key)
            if got is None:
                return None, f'not measured: {why("steps")}'
            return (got[field], '') if field in got else (None, f'failed: {got.get("failed", "no " + field)}')

        for what, ours, theirs, has_goal in STEP_ROWS:
            ms, missing = value(ours, 'milliseconds')
            eager, reason = value(theirs, 'milliseconds')
            goal = f'≤ {limit}' if has_goal else ''
            if ms is None or eager is None:
                rows.append(Row(f'{model}: {what}', goal, missing or reason, None, False))
                continue
            float32, _ = value(theirs.replace('_bf16', ''), 'milliseconds')
            beside = f'; eager in float32 {float32:.1f} ms' if 'bf16' in theirs and float32 is not None else ''
            rows.append(Row(f'{model}: {what}', goal, f'{ms / eager:.2f} ({ms:.1f} of {eager:.1f} ms{beside})',
                            ms / eager <= limit if has_goal else None, False))
        rows.append(equal_bits(f'{model}: gradients of a step with a graph and without',
                               value('graph', 'gradient_bits'), value('no_graph', 'gradient_bits')))
        rows.append(beside_the_gradient(model, value))
        off, missing = value('compared', 'distance_to_cpu')
        name = f"{model}: gradients against the CPU's"
        if off is None:
            rows.append(Row(name, GRADIENTS_RULE, missing, None, False))
        else:
            rounding = of['compared']['distance_of_rounding']
            most = [max(GRADIENTS_OFF, ROUNDINGS * n) for n in rounding]
            rows.append(Row(name, GRADIENTS_RULE,
                            ', '.join(f'{player} {d:.1e} of at most {m:.1e} (rounding alone: {n:.1e})'
                                      for player, d, m, n in zip(('generator', 'discriminator'), off, most, rounding)),
                            all(d <= m for d, m in zip(off, most)), any(d > GRADIENTS_WRONG for d in off)))
        rows.append(equal_bits(f'{model}: gradients of the same steps in another process',
                               value('compared', 'gradient_bits'), value('again', 'gradient_bits')))
    fleets = parts['peers'].get('result')
    for algorithm in MIXING:
        for transport in ('grpc', 'nccl'):
            of = (fleets or {}).get(f'{algorithm}-{transport}')
            what = f'four peers on one GPU, {algorithm}, transport {transport}'
            # NCCL's sums have an order of their own, which 300 rounds magnify; but all members have them.
            goal = 'train' if transport == 'grpc' else 'bits of gRPC' if algorithm == 'dp-oadam' else 'one x at all'
            if of is None:
                rows.append(Row(what, goal, f'not measured: {why("peers")}', None, True))
            elif 'failed' in of:
                rows.append(Row(what, goal, f'failed: {of["failed"]}', False, True))
            else:
                text, right = f'{of["rounds"]} rounds in {of["seconds"]:.0f} s', True
                if transport == 'nccl':
                    off = of.get('distance_to_grpc')
                    text += f', {of["payloads_by_nccl"]} payloads by NCCL' if algorithm == 'dp-oadam' else ''
                    text += ', nothing to compare with' if off is None else f', distance {off:.1e}'
                    if algorithm == 'dp-oadam':
                        right = off == 0 and of['payloads_by_nccl'] > 0
                    else:
                        without = of['without_means_by_nccl']
                        text += f'; means were not by NCCL at {", ".join(map(str, without))}' if without else ''
                        right = of.get('equal_at_all', False) and not without
                rows.append(Row(what, goal, text, right, True))
    rows += library_figures(parts['library'].get('result'), parts['library'].get('why', 'it failed'))
    sanitizer = parts['sanitizer']
    rows.append(Row('compute-sanitizer on the kernels', 'no errors',
                    'no errors' if 'result' in sanitizer else f'{sanitizer["state"]}: {sanitizer.get("why", "")}',
                    True if 'result' in sanitizer else False if sanitizer['state'] == 'failed' else None, True))
    return rows


def equal_bits(what, first, second):
    """The row of two checksums, each with the reason if it is missing."""
    if first[0] is None or second[0] is None:
        return Row(what, 'equal bits', first[1] or second[1], None, True)
    equal = first[0] == second[0]
    return Row(what, 'equal bits', 'equal' if equal else 'other bits', equal, True)


def beside_the_gradient(model, value):
    """The row of what a step of a peer on a ring has besides its gradient, as if nothing of it ran at the same time."""
    what = f'{model}: OAdam and the edges of two neighbours with innov-int4, without sending, of a step'
    goal = '≤ 3 %' if model == 'wgan-gp-resnet' else ''
    got = [value('graph', field) for field in ('milliseconds', 'with_optimizer', 'edge_emit', 'edge_complete')]
    for ms, missing in got:
        if ms is None:
            return Row(what, goal, missing, None, False)
    gradient, with_optimizer, emit, complete = (ms for ms, _ in got)
    # Both are medians of times that vary.
    optimizer, edges = max(0, with_optimizer - gradient), 2 * (emit + complete)
    share = (optimizer + edges) / (gradient + optimizer + edges)
    text = f'{100 * share:.1f} % (OAdam {optimizer:.2f} ms, edges {edges:.2f} ms, gradient {gradient:.1f} ms)'
    return Row(what, goal, text, share <= 0.03 if goal else None, False)


def library_figures(places, why):
    """The rows of PyTorch's parameters that are mixed on the GPU."""
    names = ['parameters of PyTorch are mixed on the GPU, by two peers', "their bits, beside those by the host's memory",
             'mean of these peers, off by', "mix() there over mix() by the host's memory"]
    goals = ['in place', 'equal bits', '≤ 1e-6', '< 1']
    must_hold = [True, True, True, False]
    failed = failures(places)
    if not places or failed:
        return [Row(name, goal, f'failed: {failed[0]}' if failed else f'not measured: {why}', None, must)
                for name, goal, must in zip(names, goals, must_hold)]
    there, by_host = (list(places[place].values()) for place in ('in-place', 'by-host'))
    on = {peer['vector_on'] for peer in there}
    equal = [peer['bits'] for peer in there] == [peer['bits'] for peer in by_host]
    off = abs(sum(peer['mean_off'] for peer in there)) / len(there)
    ms, ms_by_host = (max(peer['milliseconds'] for peer in peers) for peers in (there, by_host))
    got = [', '.join(sorted(on)), 'equal' if equal else 'other bits', f'{off:.1e}',
           f'{ms / ms_by_host:.2f} ({ms:.1f} of {ms_by_host:.1f} ms)']
    right = [all(device.startswith('cuda') for device in on), equal, off <= 1e-6, ms < ms_by_host]
    return [Row(*row) for row in zip(names, goals, got, right, must_hold)]


def page(found, rows, parts):
    text = ['# gpu_check', '', f'Machine: {"; ".join(found) if found else "no GPU"}.', '',
            '| what | to reach | measured | |', '| --- | --- | --- | --- |']
    marks = {True: 'reached', False: 'missed', None: ''}
    text += [f'| {row.what} | {row.to_reach} | {row.measured} | {marks[row.reached]} |' for row in rows]
    broken = [(name, f) for name, p in parts.items()
              for f in ([p['why']] if p['state'] == 'failed' else failures(p.get('result')))]
    if broken:
        text += ['', '## What failed', ''] + [f'- {name}: {f}' for name, f in broken]
    return '\n'.join(text) + '\n'


def main():
    p = argparse.ArgumentParser(description=__doc__.split('\n\n')[0])
    for name in ('bin', 'scripts', 'package', 'out'):
        p.add_argument('--' + name, required=True)
    p.add_argument('--libraries', default='')
    p.add_argument('--only', default='')
    a = p.parse_args()
    only = [name for name in a.only.split(',') if name]
    unknown = [name for name in only if name not in LIMITS]
    if unknown:
        print(f'gpu_check: no part {unknown[0]}; there are {", ".join(LIMITS)}', file=sys.stderr)
        return 2
    check = Check(a)
    if check.gpus:
        check.all(only)
    else:
        check.parts = {name: {'state': 'not measured', 'why': 'no GPU'} for name in LIMITS}
    rows, text = check.write()
    print(text)
    if not check.gpus:
        return NO_GPU
    wrong = any(row.reached is False and row.must_hold for row in rows)
    return 1 if wrong or any('failed' in p['state'] for p in check.parts.values()) else 0


if __name__ == '__main__':
    sys.exit(main())
