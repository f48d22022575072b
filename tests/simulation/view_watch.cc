#include "tests/simulation/view_watch.h"

#include "absl/strings/str_format.h"

namespace gossamer::simulation {

void ViewWatch::BeginIncarnation() {
  seen_.epoch = 0;
  views_.clear();
}

ViewWatch::Taken ViewWatch::Check(const View& view, bool adopted) {
  if (view.epoch == 0) {
    // The peer has not begun by that view, and begins as at first.
    if (!adopted) {
      seen_ = {};
      views_.clear();
    }
    return Taken::kNone;
  }
  if (view.generation == seen_.generation && view.epoch == seen_.epoch) {
    return Taken::kNone;
  }
  if (!view.NewerThan(seen_)) violation_("took a view that is older");
  const Taken taken = seen_.epoch == 0 ? Taken::kFirst : Taken::kLater;
  seen_ = view;
  auto& known = known_[{view.generation, view.epoch}];
  std::shared_ptr<const View> same = known.lock();
  if (!same) known = same = std::make_shared<const View>(view);
  views_.push_back(same);
  if (same->from_round != view.from_round ||
      same->overlap_steps != view.overlap_steps ||
      same->members != view.members) {
    violation_(absl::StrFormat(
        "view %d of generation %d is not the one that others have", view.epoch,
        view.generation));
  }
  return taken;
}

}  // namespace gossamer::simulation
