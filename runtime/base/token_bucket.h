// A rate limit: a number of tokens at once, and so many more a second.
//
// This header is pure and knows nothing of who takes them or of clocks.

#ifndef GOSSAMER_RUNTIME_BASE_TOKEN_BUCKET_H_
#define GOSSAMER_RUNTIME_BASE_TOKEN_BUCKET_H_

#include <algorithm>

#include "absl/time/time.h"

namespace gossamer {

class TokenBucket {
 public:
  // Full at `now`: `most` tokens.  `per_second` come back until it is full
  // again.
  TokenBucket(double most, double per_second, absl::Time now)
      : most_(most), per_second_(per_second), tokens_(most), at_(now) {}

  // Returns the tokens at `now`.  A clock that goes back adds none.
  double Tokens(absl::Time now) const {
    const double seconds = std::max(0.0, absl::ToDoubleSeconds(now - at_));
    return std::min(most_, tokens_ + per_second_ * seconds);
  }
  // Returns false, and takes nothing, if there are fewer.
  bool Take(double tokens, absl::Time now) {
    tokens_ = Tokens(now);
    at_ = now;
    if (tokens_ < tokens) return false;
    tokens_ -= tokens;
    return true;
  }

 private:
  double most_, per_second_;
  double tokens_;
  absl::Time at_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_BASE_TOKEN_BUCKET_H_
