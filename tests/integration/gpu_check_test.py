"""deploy/gpu_check.sh on this machine, with programs that stand for those that need a GPU.

Usage: gpu_check_test.py SCRIPT
"""
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
from unittest import mock

SCRIPT = os.path.abspath(sys.argv.pop(1))

KERNELS = '''
import json, sys
json.dump({"device": "stub", "bits": "equal", "kernels": [
    {"name": "copy", "gb_per_s": 2000, "of_copy": 1},
    {"name": "encode int4", "gb_per_s": 1800, "of_copy": 0.9},
    {"name": "oadam", "gb_per_s": 1000, "of_copy": 0.5}]}, open(sys.argv[sys.argv.index("--json") + 1], "w"))
'''
SANITIZED = '''
import sys
if "--json" not in sys.argv:
    for suite in sys.argv[-1].partition("=")[2].split(":"):
        print("[----------] 2 tests from", suite.split(".")[0])
    sys.exit(0)
'''
# Without deterministic kernels both are faster, PyTorch by more.
STEP = '''
import json, sys
a = sys.argv
ms = 40.0 if "bf16" not in a else 10.0
if "--deterministic" in a and a[a.index("--deterministic") + 1] == "off":
    ms -= 1
step = {"model": a[a.index("--model") + 1], "parameters": [1, 2], "milliseconds": ms, "with_optimizer": ms + 0.5}
if "--edge" in a:
    step.update(edge_emit=0.1, edge_complete=0.15)
if "--compare" in a:
    step["distance_to_cpu"] = [1e-6, 2e-4]
    step["distance_of_rounding"] = [1e-7, 1.5e-4]
if "--compare" in a or "--bits" in a:
    # Parameters that were moved away have other gradients.
    step["gradient_bits"] = 7 + ("--compare" in a)
json.dump(step, open(a[a.index("--json") + 1], "w"))
'''
EAGER = '''
import json, sys
a = sys.argv
ms = 100.0 if "bf16" not in a else 25.0
if a[a.index("--deterministic") + 1] == "off":
    ms *= 0.8
json.dump({"parameters": [1, 2], "milliseconds": ms}, open(a[a.index("--json") + 1], "w"))
'''
# Of both transports the parameters of an algorithm are the same.
PEER = '''
import json, os, struct, sys
a = sys.argv
config = open(a[a.index("--config") + 1]).read()
nccl = 'transport: "nccl"' in config
assert nccl or 'transport: "grpc"' in config
assert 'fabric: "gpu-check"' in config and os.environ["NCCL_HOSTID"].endswith(a[a.index("--id") + 1])
assert ("--replay" in a) == (nccl and '"dp-oadam"' in config)
folder = f'{a[a.index("--run-dir") + 1]}/peer-{a[a.index("--id") + 1]}/checkpoints/round-301'
os.makedirs(folder)
head = json.dumps({"parameters": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
with open(folder + "/state.safetensors", "wb") as f:
    f.write(struct.pack("<Q", len(head)) + head + struct.pack("<2f", 1, 2))
if nccl:
    print("NCCL brought 10 payloads; 0 fell back to gRPC")
    detail = "among all peers, for means" if '"cp-oadam"' in config else "among peers 1, 2, 3, 4, for rounds from 1"
    with open(folder + "/../../events.jsonl", "w") as f:
        for kind in ["nccl_ready"]:
            print(json.dumps({"time": 1.5, "round": 1, "kind": kind, "detail": detail}), file=f)
'''
SERVICE = '''
import sys
open(sys.argv[sys.argv.index("--port-file") + 1], "w").write("7700")
'''
# Of both places the bits are the same, and those of two peers are not.
RUN = '''
import json, os, sys
folder, place = sys.argv[-2:]
assert place in ("in-place", "by-host") and sys.argv[-3].endswith("gpu_library.py")
assert os.environ["GOSSAMER_LIBRARY"].endswith("lib/libgossamer.so") and os.path.isdir(os.environ["GOSSAMER_BIN"])
for peer in (1, 2):
    json.dump({"vector_on": "cuda:0" if place == "in-place" else "cpu", "mean_off": 1e-4 * (-1) ** peer,
               "bits": str(peer), "milliseconds": 5.0 if place == "in-place" else 20.0},
              open(f"{folder}/{place}-{peer}.json", "w"))
'''


class GpuCheckTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.bin = os.path.join(self.folder, 'bin')
        self.out = os.path.join(self.folder, 'out')
        os.mkdir(self.bin)
        self.program('gpu_kernels', SANITIZED + KERNELS)
        self.program('gpu_step', STEP)
        self.program('gossamer-peer', PEER)
        self.program('gossamer-topology', SERVICE)
        self.program('eager_step.py', EAGER)
        self.package = os.path.join(self.folder, 'python')
        os.makedirs(os.path.join(self.package, 'gossamer'))
        self.gossamer_run(RUN)

    def gossamer_run(self, text):
        with open(os.path.join(self.package, 'gossamer', 'run.py'), 'w') as f:
            f.write(text)

    def program(self, name, text):
        path = os.path.join(self.bin, name)
        with open(path, 'w') as f:
            f.write(f'#!{sys.executable}\n{text}')
        os.chmod(path, 0o755)

    def module(self):
        spec = importlib.util.spec_from_file_location('gpu_check', os.path.join(os.path.dirname(SCRIPT), 'gpu_check.py'))
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    def check(self, gpu=True, limit=None, budgets=None, all_seconds=None, more=()):
        """Runs the parts; returns the exit code, the JSON and the page."""
        module = self.module()
        os.makedirs(self.out, exist_ok=True)
        argv = ['gpu_check', '--bin', self.bin, '--scripts', self.bin, '--package', self.package, '--out',
                self.out, *more]
        limits = {name: limit or seconds for name, seconds in module.LIMITS.items()}
        with mock.patch.object(module, 'gpus', lambda: ['GPU 0: stub'] if gpu else []), \
                mock.patch.object(module, 'LIMITS', limits), mock.patch.object(sys, 'argv', argv), \
                mock.patch.object(module, 'BUDGETS', budgets or module.BUDGETS), \
                mock.patch.object(module, 'ALL', all_seconds or module.ALL), \
                mock.patch.object(module.shutil, 'which', lambda name: self.sanitizer), mock.patch('builtins.print'):
            code = module.main()
        with open(os.path.join(self.out, 'gpu_check.json')) as f:
            found = json.load(f)
        with open(os.path.join(self.out, 'gpu_check.md')) as f:
            return code, found, f.read()

    @property
    def sanitizer(self):
        self.program('compute-sanitizer', 'import subprocess, sys\nsys.exit(subprocess.call(sys.argv[3:]))')
        return os.path.join(self.bin, 'compute-sanitizer')

    def row(self, found, what):
        rows = [r for r in found['figures'] if r['what'].startswith(what)]
        self.assertEqual(len(rows), 1, what)
        return rows[0]

    def test_a_machine_without_a_gpu_says_so_of_every_figure(self):
        run = subprocess.run([SCRIPT, '--out', self.out, '--bin', self.bin], capture_output=True, text=True,
                             env={**os.environ, 'PATH': '/usr/bin:/bin', 'PYTHON': sys.executable})
        self.assertEqual(run.returncode, 3, run.stderr)
        with open(os.path.join(self.out, 'gpu_check.json')) as f:
            found = json.load(f)
        self.assertGreater(len(found['figures']), 10)
        for row in found['figures']:
            self.assertEqual(row['measured'], 'not measured: no GPU')
            self.assertIsNone(row['reached'])
        self.assertIn('not measured: no GPU', run.stdout)

    def test_figures_are_held_against_what_is_to_be_reached(self):
        code, found, page = self.check()
        self.assertEqual(code, 0, page)
        self.assertTrue(self.row(found, 'bits')['reached'])
        self.assertTrue(self.row(found, 'encode int4')['reached'])
        self.assertFalse(self.row(found, 'oadam')['reached'])
        self.assertIsNone(self.row(found, 'copy')['reached'])
        over = 'wgan-gp-resnet: step with a graph over eager PyTorch'
        for what, measured, reached in (
                (', both deterministic', '0.40 (40.0 of 100.0 ms)', True),
                (', neither deterministic', '0.49 (39.0 of 80.0 ms)', True),
                (' in bf16, both deterministic', '0.40 (10.0 of 25.0 ms; eager in float32 100.0 ms)', None),
                (' in bf16, neither deterministic', '0.45 (9.0 of 20.0 ms; eager in float32 80.0 ms)', None)):
            row = self.row(found, over + what)
            self.assertEqual((row['measured'], row['reached']), (measured, reached), what)
        self.assertEqual(self.row(found, 'sagan: step without a graph over')['measured'], '0.40 (40.0 of 100.0 ms)')
        self.assertTrue(self.row(found, 'wgan-gp-resnet: gradients of a step with a graph and without')['reached'])
        rest = self.row(found, 'wgan-gp-resnet: OAdam and the edges of two neighbours')
        self.assertEqual(rest['measured'], '2.4 % (OAdam 0.50 ms, edges 0.50 ms, gradient 40.0 ms)')
        self.assertTrue(rest['reached'])
        gradients = self.row(found, 'sagan: gradients against')
        self.assertEqual(gradients['to_reach'], '≤ 1e-4 or 2 × rounding alone')
        self.assertIn('discriminator 2.0e-04 of at most 3.0e-04 (rounding alone: 1.5e-04)', gradients['measured'])
        self.assertTrue(gradients['reached'])
        self.assertTrue(self.row(found, 'sagan: gradients of the same steps')['reached'])
        self.assertTrue(self.row(found, 'four peers on one GPU, dp-oadam, transport grpc')['reached'])
        nccl = self.row(found, 'four peers on one GPU, dp-oadam, transport nccl')
        self.assertIn('40 payloads by NCCL, distance 0.0e+00', nccl['measured'])
        self.assertTrue(nccl['reached'])
        self.assertTrue(self.row(found, 'four peers on one GPU, cp-oadam, transport nccl')['reached'])
        self.assertTrue(self.row(found, 'compute-sanitizer')['reached'])
        self.assertIn('| oadam over a copy | ≥ 0.8 | 0.50 (1000 GB/s) | missed |', page)
        self.assertNotIn('What failed', page)

    def test_other_bits_without_a_graph_are_a_failure(self):
        self.program('gpu_step', STEP.replace('= 7 ', '= (6 if "off" in a else 7) '))
        code, found, _ = self.check(more=['--only', 'steps'])
        self.assertEqual(code, 1)
        for model in ('wgan-gp-resnet', 'sagan'):
            row = self.row(found, f'{model}: gradients of a step with a graph and without')
            self.assertEqual((row['measured'], row['reached']), ('other bits', False))
            self.assertTrue(self.row(found, f'{model}: gradients of the same steps')['reached'])

    def test_other_bits_of_kernels_are_a_failure(self):
        self.program('gpu_kernels', SANITIZED + KERNELS.replace('"equal"', '"17 differ"'))
        code, found, _ = self.check(more=['--only', 'kernels'])
        row = self.row(found, 'bits of the kernels')
        self.assertEqual((row['measured'], row['reached'], row['must_hold']), ('17 differ', False, True))
        self.assertEqual(code, 1)

    def test_gradients_may_miss_their_rule_and_not_be_wrong(self):
        for distance, measured, expected in (('3.1e-4', 'discriminator 3.1e-04 of at most 3.0e-04', 0),
                                             ('1.1e-2', 'discriminator 1.1e-02 of at most 3.0e-04', 1)):
            self.program('gpu_step', STEP.replace('2e-4', distance))
            code, found, _ = self.check(more=['--only', 'steps'])
            row = self.row(found, 'sagan: gradients against')
            self.assertIn(measured, row['measured'])
            self.assertIs(row['reached'], False)
            self.assertEqual(code, expected, distance)
        # gpu_step looks as well.
        self.program('gpu_step', STEP + 'if "--compare" in a: sys.exit("a gradient is wrong")')
        code, found, _ = self.check(more=['--only', 'steps'])
        self.assertEqual(code, 1)
        self.assertIn('a gradient is wrong', self.row(found, 'sagan: gradients against')['measured'])

    def test_the_run_with_a_goal_has_nothing_before_its_steps(self):
        module = self.module()
        for key, arguments in module.GOSSAMER.items():
            self.assertNotIn('--compare', arguments)
            self.assertEqual('--edge' in arguments, key == 'graph')

    def test_an_optimizer_takes_no_time_below_zero(self):
        self.program('gpu_step', STEP.replace('ms + 0.5', 'ms - 0.5'))
        _, found, _ = self.check(more=['--only', 'steps'])
        row = self.row(found, 'wgan-gp-resnet: OAdam and the edges of two neighbours')
        self.assertEqual(row['measured'], '1.2 % (OAdam 0.00 ms, edges 0.50 ms, gradient 40.0 ms)')
        self.assertIn('without sending', row['what'])

    def test_a_speed_may_be_missed(self):
        self.program('eager_step.py', EAGER.replace('100.0', '50.0'))
        code, found, _ = self.check(more=['--only', 'steps'])
        self.assertEqual(code, 0)
        row = self.row(found, 'wgan-gp-resnet: step with a graph over eager PyTorch, both')
        self.assertEqual((row['measured'], row['reached']), ('0.80 (40.0 of 50.0 ms)', False))

    def test_the_sanitizer_sees_every_suite_of_the_kernels(self):
        tests = os.path.join(os.path.dirname(SCRIPT), '..', 'tests', 'algorithms', 'kernels', 'kernels_test.cc')
        with open(tests) as f:
            suites = {'/'.join(names) for names in re.findall(r'INSTANTIATE_TEST_SUITE_P\((\w+), (\w+),', f.read())}
        self.assertEqual({pattern.split('.')[0] for pattern in self.module().DEVICE_TESTS}, suites)
        self.program('gpu_kernels', SANITIZED.replace('.split(":")', '.split(":")[:1]') + KERNELS)
        code, found, _ = self.check(more=['--only', 'sanitizer'])
        self.assertEqual(code, 1)
        self.assertEqual(self.row(found, 'compute-sanitizer')['measured'],
                         'failed: the sanitizer ran no test of Alignments/DeviceOnlyTest')

    def test_a_part_that_fails_does_not_stop_the_others(self):
        self.program('gpu_kernels', 'import sys\nprint("17 bits differ")\nsys.exit(1)')
        code, found, page = self.check()
        self.assertEqual(code, 1)
        self.assertEqual(found['parts']['kernels']['state'], 'failed')
        self.assertIn('17 bits differ', page)
        self.assertEqual(found['parts']['steps']['state'], 'measured')
        self.assertEqual(found['parts']['peers']['state'], 'measured')

    def test_other_bits_over_nccl_are_a_failure(self):
        self.program('gossamer-peer', PEER.replace('1, 2))', '1, 3 if nccl else 2))'))
        code, found, _ = self.check(more=['--only', 'peers'])
        self.assertEqual(code, 1)
        self.assertFalse(self.row(found, 'four peers on one GPU, dp-oadam, transport nccl')['reached'])

    def test_means_that_nccl_did_not_bring_are_a_failure(self):
        what = 'four peers on one GPU, cp-oadam, transport nccl'
        # At peer 3 it broke, it was never there, and only payloads of edges came by it.
        for old, new in (('["nccl_ready"]', '["nccl_ready"] + ["nccl_broken"] * ("peer-3/" in folder)'),
                         ('["nccl_ready"]', '["nccl_ready"] * ("peer-3/" not in folder)'),
                         ('for means"', 'for " + ("rounds" if "peer-3/" in folder else "means")')):
            self.program('gossamer-peer', PEER.replace(old, new))
            code, found, _ = self.check(more=['--only', 'peers'])
            row = self.row(found, what)
            self.assertIn('; means were not by NCCL at 3', row['measured'])
            self.assertIs(row['reached'], False)
            self.assertEqual(code, 1)
            self.assertTrue(self.row(found, what.replace('cp-', 'dp-'))['reached'])

    def test_steps_leave_time_for_the_parts_after_them(self):
        code, found, _ = self.check(budgets={'steps': 4}, more=['--only', 'steps,peers'])
        self.assertEqual(code, 1)
        self.assertIn('no time was left for sagan-compared', self.row(found, 'sagan: gradients against')['measured'])
        self.assertTrue(self.row(found, 'four peers on one GPU, cp-oadam, transport nccl')['reached'])

    def test_fleets_without_time_say_so(self):
        _, found, _ = self.check(all_seconds=4, more=['--only', 'peers'])
        self.assertEqual(self.row(found, 'four peers on one GPU, cp-oadam, transport nccl')['measured'],
                         'failed: no time was left for cp-oadam-nccl')

    def test_programs_of_pytorch(self):
        _, found, _ = self.check(more=['--only', 'library'])
        for what, measured in (('parameters of PyTorch', 'cuda:0'), ('their bits', 'equal'), ('mean of these', '0.0e+00'),
                               ('mix() there', '0.25 (5.0 of 20.0 ms)')):
            self.assertEqual(self.row(found, what)['measured'], measured)
            self.assertTrue(self.row(found, what)['reached'])
        # Parameters that were copied after all, with other bits, a mean that is lost.
        self.gossamer_run(RUN.replace('cuda:0', 'cpu').replace('str(peer)', 'place').replace('-1) **', '1) **'))
        code, found, _ = self.check(more=['--only', 'library'])
        self.assertEqual(code, 1)
        for what in ('parameters of PyTorch', 'their bits', 'mean of these'):
            self.assertIs(self.row(found, what)['reached'], False)
        self.gossamer_run('import sys\nsys.exit("no such codec")')
        code, found, _ = self.check(more=['--only', 'library'])
        self.assertEqual(code, 1)
        self.assertIn('no such codec', self.row(found, 'their bits')['measured'])

    def test_a_service_that_does_not_start_is_named(self):
        self.program('gossamer-topology', 'import sys\nsys.exit("no such configuration")')
        _, found, _ = self.check(more=['--only', 'peers'])
        self.assertIn('no topology service: no such configuration',
                      self.row(found, 'four peers on one GPU, dp-oadam, transport grpc')['measured'])

    def test_one_command_that_fails_leaves_the_rest_of_its_part(self):
        self.program('gpu_step', 'import sys\n'
                                 'if "--graphs off" in " ".join(sys.argv): sys.exit("out of memory in libtorch")\n' + STEP)
        code, found, page = self.check()
        self.assertEqual(code, 1)
        self.assertEqual(found['parts']['steps']['state'], 'failed in part')
        self.assertTrue(self.row(found, 'sagan: step with a graph over eager PyTorch, both')['reached'])
        for what in ('step without a graph', 'gradients of a step with a graph and without'):
            self.assertIn('out of memory', self.row(found, f'sagan: {what}')['measured'])

    def test_a_command_that_hangs_is_ended(self):
        self.program('gpu_kernels', 'import time\ntime.sleep(100)')
        code, found, _ = self.check(limit=2, more=['--only', 'kernels'])
        self.assertEqual(code, 1)
        self.assertIn('took more than 2 s', found['parts']['kernels']['why'])
        self.assertEqual(found['parts']['steps'], {'state': 'not measured', 'why': 'not asked for'})

    def test_a_fleet_that_hangs_is_ended_by_its_launcher(self):
        # As gossamer.run: its peers are in sessions of their own.
        pid = os.path.join(self.folder, 'pid')
        self.program('gpu_kernels', 'import signal, subprocess, sys\n'
                                    'signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))\n'
                                    'peer = subprocess.Popen(["sleep", "100"], start_new_session=True)\n'
                                    'try:\n'
                                    f'    print(peer.pid, file=open({pid!r}, "w"), flush=True)\n'
                                    '    peer.wait()\n'
                                    'finally:\n'
                                    '    peer.kill()\n'
                                    '    peer.wait()')
        code, found, _ = self.check(limit=6, more=['--only', 'kernels'])
        self.assertEqual(code, 1)
        self.assertIn('took more than 6 s', found['parts']['kernels']['why'])
        with open(pid) as f, self.assertRaises(ProcessLookupError):
            os.kill(int(f.read()), 0)

    def test_networks_that_differ_are_not_compared(self):
        self.program('eager_step.py', EAGER.replace('[1, 2]', '[1, 3]'))
        _, found, _ = self.check(more=['--only', 'steps'])
        self.assertIn('its networks have [1, 3] parameters, not [1, 2]',
                      self.row(found, 'sagan: step with a graph over eager PyTorch, both')['measured'])

    def test_a_pack_holds_programs_scripts_and_libraries(self):
        for name in ('gpu_kernels', 'gpu_step', 'gossamer', 'gossamer-peer', 'gossamer-peer-networks', 'gossamer-topology', 'libgossamer_cuda.so'):
            shutil.copy('/bin/ls', os.path.join(self.bin, name))
        os.mkdir(os.path.join(self.folder, 'lib'))
        shutil.copy('/bin/ls', os.path.join(self.folder, 'lib', 'libgossamer.so'))
        pack = os.path.join(self.folder, 'pack.tar.gz')
        run = subprocess.run([SCRIPT, '--pack', pack, '--bin', self.bin], capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        with tarfile.open(pack) as tar:
            names = tar.getnames()
        for name in ('bin/gpu_step', 'bin/libgossamer_cuda.so', 'lib/libgossamer.so', 'gpu_check.sh', 'gpu_check.py', 'gpu_library.py',
                     'eager_step.py', 'python/gossamer/run.py'):
            self.assertIn('gossamer-gpu/' + name, names)
        self.assertFalse([n for n in names if n.startswith('gossamer-gpu/lib/libc.so')])
        self.assertTrue([n for n in names if n.startswith('gossamer-gpu/lib/libselinux')])


if __name__ == '__main__':
    unittest.main()
