// How far apart peers stay while they train: the consensus distance at which a
// schedule's mixing and the noise of the steps balance.
//
// Pure; a linear model to rank settings by, not a forecast of a GAN's
// distances.  Knows nothing of codecs but their error, and nothing of time.

#ifndef GOSSAMER_TOPOLOGY_CONSENSUS_MODEL_H_
#define GOSSAMER_TOPOLOGY_CONSENSUS_MODEL_H_

#include <cstdint>
#include <vector>

#include "topology/mixing_schedule.h"

namespace gossamer {

// Every round adds independent noise n of variance 1 to every parameter of
// every peer and mixes a snapshot that is tau = `age` rounds old:
//   x(k+1) = x(k) - gamma (I - W) x(k - tau) + n(k).
// The distance is the mean of 1/M sum |x_i - mean|^2 per parameter once it no
// longer grows.  Without delay it is (M-1)/M / (1 - rho^2), rho^2 the factor by
// which a round shrinks the squared distance.  With it, the covariances
// c_j = E<x(k), x(k-j)> of a mode with E[I - W] = mu and E[(I - W)^2] = nu obey
//   2 gamma mu c_tau - gamma^2 nu c_0 = 1,
//   c_j = c_(j-1) - gamma mu c_|tau+1-j|,  j = 1 .. tau
// (multiply the recursion by x(k+1-j) and take means; W of a round is
// independent of all x it is used on).  A fixed W has a mode per eigenvalue;
// of the random schedules all modes are alike (not so of locality-skewed, whose
// slowest it takes for a mean one); of the periodic one the
// responses to an impulse in each round of its period are added up.
//
// A codec that sends innovations and loses the share delta = `codec_error` of
// their square keeps an error of delta / (1 - delta) times the square of what
// x changed since the edge was last used; it is mixed in as if it were white.
// That is a little more than what codecs do, whose errors partly cancel later.
class ConsensusModel {
 public:
  // `schedule` outlives the model and has no more than a few hundred peers.
  explicit ConsensusModel(const MixingSchedule& schedule);

  // gamma in (0, 1], age >= 0, codec_error in [0, 1).  Infinite if it grows
  // without end; 0 for one peer.
  double Distance(double gamma, int age, double codec_error) const;

  // Rounds between two uses of an edge, mean; 1 if all are used every round.
  double rounds_between_uses() const { return rounds_between_uses_; }

 private:
  struct Mode {
    double mu = 0;
    double nu = 0;
  };
  std::vector<double> Variances(double gamma, int age) const;
  double PeriodicVariance(double gamma, int age) const;

  const MixingSchedule& schedule_;
  std::vector<Mode> modes_;
  double rounds_between_uses_ = 1;
};

}  // namespace gossamer

#endif  // GOSSAMER_TOPOLOGY_CONSENSUS_MODEL_H_
