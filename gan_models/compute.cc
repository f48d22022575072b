#include "gan_models/compute.h"

#include <ATen/Parallel.h>

namespace gossamer {

void UseThreads(int threads) {
  if (at::get_num_threads() != threads) at::set_num_threads(threads);
}

}  // namespace gossamer
