// Dyna-COLD (Zhang, You, Xie, IEEE TAC 2023): COLD with one bit a parameter, of
// a step that shrinks by itself.

#include "algorithms/method/cold.h"
#include "algorithms/method/method.h"

namespace gossamer {
namespace {

void Check(const MethodSettings& s, Problems& problems) {
  CheckCold(s, problems);
  if (s.codec.starts_with(kShrinking)) return;
  problems.Refuse("mixing.codec", "is \"", s.codec,
                  "\", but dyna-cold is COLD with codec dyna: leave it out, or "
                  "take algorithm cold");
}

}  // namespace

GOSSAMER_METHOD(dyna_cold) = {
    .name = "dyna-cold",
    .help = {.summary = "COLD with one bit of a step that shrinks by itself",
             .property = "linear to the exact solution (strongly convex)",
             .bits = "1.000",
             .state = "2 per peer, 3 per edge",
             .needs = "lasting neighbours, every message, a static graph",
             .gamma = "0.05",
             .source = "Zhang, You, Xie, IEEE TAC 2023",
             .page = "cold",
             .settings = "step.optimizer=cold mixing.codec=dyna"},
    .defaults = {.optimizer = "cold",
                 .codec = kShrinking,
                 .overlap_steps = 0,
                 .gamma = GammaOfCold},
    .is_its_optimizer = true,
    .own_codec = kShrinking,
    .step_then_mix = true,
    .check = Check,
    .rule = MakeCold,
};

}  // namespace gossamer
