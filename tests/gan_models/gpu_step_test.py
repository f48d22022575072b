"""gpu_step on a CPU, whose steps are those of the CPU.

Usage: gpu_step_test.py GPU_STEP
"""
import json
import os
import subprocess
import sys
import unittest

PROGRAM = os.path.abspath(sys.argv.pop(1))


class GpuStepTest(unittest.TestCase):
    def run_program(self, *arguments):
        """What it leaves, if its exit code is 0."""
        command = [PROGRAM, '--device', 'cpu', '--width', '4', '--batch', '2', '--steps', '2', *arguments]
        run = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        return json.loads(run.stdout)

    def test_distances_are_of_other_roundings_alone(self):
        step = self.run_program('--compare', '--edge')
        self.assertEqual(step['distance_to_cpu'], [0, 0])
        for distance in step['distance_of_rounding']:
            self.assertGreater(distance, 0)
            self.assertLess(distance, 1e-4)
        self.assertGreater(step['payload_bytes'], 0)
        for part in ('milliseconds', 'with_optimizer', 'edge_emit', 'edge_complete'):
            self.assertGreater(step[part], 0, part)

    def test_bits_are_those_of_another_process(self):
        bits = [self.run_program('--bits', *more)['gradient_bits']
                for more in ((), ('--deterministic', 'off'), ('--edge', ))]
        self.assertGreater(bits[0], 0)
        self.assertEqual(bits, 3 * bits[:1])
        self.assertNotEqual(self.run_program('--bits', '--steps', '3')['gradient_bits'], bits[0])

    def test_an_edge_is_timed_on_request(self):
        self.assertNotIn('edge_complete', self.run_program())

    def test_arguments_that_it_does_not_have_are_refused(self):
        for arguments in (['--edges'], ['--steps', '0'], ['--deterministic', 'no']):
            run = subprocess.run([PROGRAM, '--device', 'cpu', *arguments], capture_output=True, text=True)
            self.assertEqual(run.returncode, 2, arguments)


if __name__ == '__main__':
    unittest.main()
