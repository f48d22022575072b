// A worker for StateCollector that runs its work at once.
//
// This header knows nothing of the work.

#ifndef GOSSAMER_TESTS_TESTING_AT_ONCE_H_
#define GOSSAMER_TESTS_TESTING_AT_ONCE_H_

#include <functional>

namespace gossamer {

inline void AtOnce(const std::function<void()>& work,
                   const std::function<void()>& done) {
  work();
  done();
}

}  // namespace gossamer

#endif  // GOSSAMER_TESTS_TESTING_AT_ONCE_H_
