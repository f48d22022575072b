// The networks of a DataLens run: teachers that distinguish real from generated
// images, a student that generates, a classifier that scores what it generates.
//
// Small dense networks on flat images, conditional on the class.  This header
// includes no torch, and knows nothing of votes' noise, budgets or processes.

#ifndef GOSSAMER_GAN_MODELS_DATALENS_DATALENS_H_
#define GOSSAMER_GAN_MODELS_DATALENS_DATALENS_H_

#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "algorithms/base/parameter_layout.h"
#include "algorithms/base/rng.h"
#include "algorithms/privacy/roles.h"
#include "algorithms/privacy/settings.h"

namespace gossamer {

// Teachers first .. first + count - 1 of settings.teachers.  The examples are
// dealt out by the seed alone, each to one teacher, the same number to all;
// what is left over is not used.  A teacher without an example of a class
// abstains on images of that class.  kInvalidArgument: no such teachers, or
// fewer examples than teachers.
absl::StatusOr<std::unique_ptr<TeacherGroup>> MakeTeacherGroup(
    const DataLensSettings& settings, const ImageBatch& examples, int classes,
    int first, int count);

// The shape of a student: its latent vector and the class one-hot come in,
// images go out.
struct StudentShape {
  int latent = 4;
  int width = 128;  // of the hidden layer
  int dimensions = 0;
  int classes = 0;
};
inline StudentShape ShapeOf(const DataLensSettings& s, int dimensions,
                            int classes) {
  return {s.latent, s.student_width, dimensions, classes};
}

// A generator's segments alone, in the order of Student::parameters().
ParameterLayout StudentLayout(const StudentShape& shape);

std::unique_ptr<Student> MakeStudent(const DataLensSettings& settings,
                                     int dimensions, int classes);

// `count` images of classes 0, 1, ... in turn, by these parameters of a
// student. kInternal if they are not finite.
absl::StatusOr<ImageBatch> SampleStudent(const StudentShape& shape,
                                         std::span<const float> parameters,
                                         int count, RngKey key);

// The share of `test` that a classifier (one hidden layer of 64, 1,000 steps of
// Adam) trained on `train` alone gets right.
absl::StatusOr<double> ClassifierAccuracy(const ImageBatch& train,
                                          const ImageBatch& test, int classes,
                                          RngKey key);

}  // namespace gossamer

#endif  // GOSSAMER_GAN_MODELS_DATALENS_DATALENS_H_
