#include "gan_models/compute.h"

#include <ATen/Parallel.h>

namespace gossamer {

void UseThreads(int threads) {
  // Asked first: this is called at every step, and nearly always nothing is to
  // change.
  if (at::get_num_threads() != threads) at::set_num_threads(threads);
}

}  // namespace gossamer
