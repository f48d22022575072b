// The networks of DataLens: votes teach the student, an example reaches one
// teacher, and saved state continues to the bit.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/base/rng.h"
#include "gan_models/data/digits.h"
#include "gan_models/datalens/datalens.h"
#include "runtime/checkpoint/checkpoint.h"

namespace gossamer {
namespace {

using ::testing::HasSubstr;

constexpr int kSide = 8;
constexpr int kPixels = kSide * kSide;

// Images of two classes, bright above or bright below, with noise.
ImageBatch Halves(int count, uint64_t seed) {
  ImageBatch batch;
  for (int i = 0; i < count; ++i) {
    const int label = i % 2;
    batch.labels.push_back(static_cast<uint8_t>(label));
    for (int j = 0; j < kPixels; ++j) {
      const float sign = (j < kPixels / 2) == (label == 0) ? 1.0f : -1.0f;
      batch.images.push_back(
          0.5f * sign +
          0.4f * static_cast<float>(RngKey(seed).Fold(i).Uniform(j)) - 0.2f);
    }
  }
  return batch;
}

DataLensSettings Settings() {
  DataLensSettings s;
  s.teachers = 12;
  s.top = 16;
  s.batch = 8;
  s.latent = 4;
  s.student_width = 32;
  s.teacher_width = 8;
  return s;
}

absl::StatusOr<ImageBatch> SamplesOf(Student& student,
                                     const DataLensSettings& s) {
  return SampleStudent(ShapeOf(s, kPixels, 2), student.parameters(), 200,
                       RngKey(3));
}

// Without noise the sum of the votes moves every class to its half.
TEST(DataLensNetworksTest, VotesTeachTheStudentItsClasses) {
  const DataLensSettings s = Settings();
  const ImageBatch train = Halves(60, 1), test = Halves(100, 2);
  auto teachers = MakeTeacherGroup(s, train, 2, 0, s.teachers);
  ASSERT_TRUE(teachers.ok()) << teachers.status();
  const auto student = MakeStudent(s, kPixels, 2);
  for (uint64_t step = 1; step <= 30; ++step) {
    const auto batch = student->Ask(step);
    ASSERT_TRUE(batch.ok()) << batch.status();
    const auto votes = (*teachers)->Vote(step, *batch);
    ASSERT_TRUE(votes.ok()) << votes.status();
    std::vector<int8_t> direction;
    for (const int16_t v : *votes) {
      EXPECT_LE(std::abs(v), s.teachers);
      direction.push_back(static_cast<int8_t>((v > 0) - (v < 0)));
    }
    ASSERT_TRUE(student->Learn(direction).ok());
  }
  const auto samples = SamplesOf(*student, s);
  ASSERT_TRUE(samples.ok());
  const auto accuracy = ClassifierAccuracy(*samples, test, 2, RngKey(1));
  ASSERT_TRUE(accuracy.ok());
  EXPECT_GT(*accuracy, 0.9);
  // An untaught one does not know which is which.
  const auto untaught = SamplesOf(*MakeStudent(s, kPixels, 2), s);
  EXPECT_LT(*ClassifierAccuracy(*untaught, test, 2, RngKey(1)), 0.9);
}

// The spread of teachers over groups changes no bit of their votes.
TEST(DataLensNetworksTest, GroupsAddUpToTheWhole) {
  const DataLensSettings s = Settings();
  const ImageBatch train = Halves(60, 1);
  auto whole = MakeTeacherGroup(s, train, 2, 0, 12);
  auto first = MakeTeacherGroup(s, train, 2, 0, 5);
  auto second = MakeTeacherGroup(s, train, 2, 5, 7);
  ASSERT_TRUE(whole.ok() && first.ok() && second.ok());
  const auto student = MakeStudent(s, kPixels, 2);
  for (uint64_t step = 1; step <= 5; ++step) {
    const auto batch = student->Ask(step);
    const auto all = (*whole)->Vote(step, *batch);
    const auto a = (*first)->Vote(step, *batch);
    const auto b = (*second)->Vote(step, *batch);
    ASSERT_TRUE(all.ok() && a.ok() && b.ok());
    std::vector<int8_t> direction;
    for (size_t j = 0; j < all->size(); ++j) {
      ASSERT_EQ((*all)[j], (*a)[j] + (*b)[j]) << "step " << step << " at " << j;
      direction.push_back(
          static_cast<int8_t>(((*all)[j] > 0) - ((*all)[j] < 0)));
    }
    ASSERT_TRUE(student->Learn(direction).ok());
  }
}

// A student and its teachers, with a step of both.
struct Pair {
  explicit Pair(const DataLensSettings& s)
      : teachers(MakeTeacherGroup(s, Halves(60, 1), 2, 0, s.teachers).value()),
        student(MakeStudent(s, kPixels, 2)) {}
  std::vector<int16_t> Step(uint64_t step) {
    const auto batch = student->Ask(step);
    std::vector<int16_t> votes = teachers->Vote(step, *batch).value();
    std::vector<int8_t> direction;
    for (const int16_t v : votes) {
      direction.push_back(static_cast<int8_t>((v > 0) - (v < 0)));
    }
    EXPECT_TRUE(student->Learn(direction).ok());
    return votes;
  }
  void VisitState(StateVisitor& visitor) {
    PrefixedVisitor first(visitor, "teachers."), second(visitor, "student.");
    visitor.Floats("parameters", student->parameters());
    teachers->VisitState(first);
    student->VisitState(second);
  }
  std::unique_ptr<TeacherGroup> teachers;
  std::unique_ptr<Student> student;
};

// The visited state is complete: networks that get it continue the same,
// whatever they did before.
TEST(DataLensNetworksTest, GoesOnFromItsStateBitForBit) {
  const DataLensSettings s = Settings();
  Pair whole(s), other(s);
  for (uint64_t step = 1; step <= 4; ++step) whole.Step(step);
  for (uint64_t step = 11; step <= 12; ++step) other.Step(step);
  const auto state =
      TakeCheckpoint({}, [&](StateVisitor& v) { whole.VisitState(v); });
  ASSERT_TRUE(state.ok()) << state.status();
  const absl::Status restored =
      RestoreCheckpoint(*state, [&](StateVisitor& v) { other.VisitState(v); });
  ASSERT_TRUE(restored.ok()) << restored;
  for (uint64_t step = 5; step <= 8; ++step) {
    EXPECT_EQ(other.Step(step), whole.Step(step)) << step;
  }
  EXPECT_THAT(other.student->parameters(),
              testing::ElementsAreArray(whole.student->parameters()));
}

// A teacher whose parameters are not finite abstains, and its state can be
// kept.  The votes of the others stay the same.
TEST(DataLensNetworksTest, TeachersThatAreNotFiniteFallSilent) {
  const DataLensSettings s = Settings();
  const ImageBatch train = Halves(60, 1);
  const ImageBatch batch = *MakeStudent(s, kPixels, 2)->Ask(1);
  // The fourth teacher is spoilt, by an example of its own.
  ImageBatch spoilt = train;
  const std::vector<int> order =
      RngKey(s.seed).Fold("teachers").Fold("shards").Permutation(60);
  std::fill_n(spoilt.images.begin() + order[3 * 5] * kPixels, kPixels, NAN);
  auto whole = MakeTeacherGroup(s, spoilt, 2, 0, 12);
  auto healthy = MakeTeacherGroup(s, train, 2, 0, 12);
  auto alone = MakeTeacherGroup(s, train, 2, 3, 1);
  for (uint64_t step = 1; step <= 3; ++step) {
    const auto sums = (*whole)->Vote(step, batch);
    ASSERT_TRUE(sums.ok()) << sums.status();
    EXPECT_EQ((*whole)->NotFinite(), 1);
    const auto all = *(*healthy)->Vote(step, batch);
    const auto own = *(*alone)->Vote(step, batch);
    EXPECT_EQ((*healthy)->NotFinite(), 0);
    for (size_t j = 0; j < all.size(); ++j) {
      ASSERT_EQ((*sums)[j], all[j] - own[j]) << step;
    }
  }
  EXPECT_TRUE(TakeCheckpoint({}, [&](StateVisitor& v) {
                (*whole)->VisitState(v);
              }).ok());
}

// Overwrites every parameter and moment.
class Spoil final : public StateVisitor {
 public:
  bool loads() const override { return true; }
  void Floats(std::string_view, std::span<float> values) override {
    std::ranges::fill(values, NAN);
  }
  void Counter(std::string_view, uint64_t&) override {}
  void Bytes(std::string_view, std::vector<std::byte>&) override {}
};

TEST(DataLensNetworksTest, AStudentThatIsNotFiniteSaysSo) {
  const DataLensSettings s = Settings();
  const auto student = MakeStudent(s, kPixels, 2);
  ASSERT_TRUE(student->Ask(1).ok());
  Spoil spoil;
  spoil.Floats("parameters", student->parameters());
  const std::vector<int8_t> direction(static_cast<size_t>(s.batch) * kPixels,
                                      1);
  for (const absl::Status& status :
       {student->Learn(direction), student->Ask(2).status(),
        SamplesOf(*student, s).status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    EXPECT_THAT(std::string(status.message()), HasSubstr("are not finite"));
  }
}

// Another example of any teacher would be a second one in its shard.
TEST(DataLensNetworksTest, AStateOfOtherExamplesIsRefused) {
  const DataLensSettings s = Settings();
  auto teachers = MakeTeacherGroup(s, Halves(60, 1), 2, 0, 12);
  auto others = MakeTeacherGroup(s, Halves(60, 2), 2, 0, 12);
  ASSERT_TRUE(teachers.ok() && others.ok());
  const auto state =
      TakeCheckpoint({}, [&](StateVisitor& v) { (*teachers)->VisitState(v); });
  ASSERT_TRUE(RestoreCheckpoint(*state, [&](StateVisitor& v) {
                (*others)->VisitState(v);
              }).ok());
  const absl::Status vote =
      (*others)->Vote(2, *MakeStudent(s, kPixels, 2)->Ask(2)).status();
  EXPECT_EQ(vote.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(vote.message()), HasSubstr("other examples"));
}

// Only the teacher that holds an example may vote otherwise for it.
TEST(DataLensNetworksTest, AnExampleReachesOneTeacher) {
  const DataLensSettings s = Settings();
  const ImageBatch train = Halves(60, 1);
  ImageBatch changed = train;
  for (int j = 0; j < kPixels; ++j) changed.images[j] = -changed.images[j];
  const auto student = MakeStudent(s, kPixels, 2);
  const auto batch = student->Ask(1);
  int different = 0;
  for (int t = 0; t < s.teachers; ++t) {
    auto one = MakeTeacherGroup(s, train, 2, t, 1);
    auto other = MakeTeacherGroup(s, changed, 2, t, 1);
    ASSERT_TRUE(one.ok() && other.ok());
    different += *(*one)->Vote(1, *batch) != *(*other)->Vote(1, *batch);
  }
  EXPECT_EQ(different, 1);
}

TEST(DataLensNetworksTest, RefusesTeachersThatAreNot) {
  const DataLensSettings s = Settings();
  EXPECT_FALSE(MakeTeacherGroup(s, Halves(60, 1), 2, 5, 8).ok());
  EXPECT_FALSE(MakeTeacherGroup(s, Halves(60, 1), 2, -1, 2).ok());
  EXPECT_FALSE(MakeTeacherGroup(s, Halves(10, 1), 2, 0, 12).ok());
}

TEST(DigitsTest, ReadsLinesAndRefusesOthers) {
  const std::string path = testing::TempDir() + "/digits.csv";
  const auto read = [&](const std::string& last) {
    std::ofstream file(path);
    for (int i = 0; i < 5; ++i) {
      for (int j = 0; j < kPixels; ++j) file << (i + j) % 17 << ",";
      file << i << "\n";
    }
    file << last;
    file.close();
    return ReadDigits(path);
  };
  const auto digits = read("");
  ASSERT_TRUE(digits.ok()) << digits.status();
  EXPECT_EQ(digits->train.labels, (std::vector<uint8_t>{0, 1, 2, 3}));
  EXPECT_EQ(digits->held_out.labels, (std::vector<uint8_t>{4}));
  EXPECT_EQ(digits->train.images[0], -1);
  EXPECT_EQ(digits->train.images[16], 1);
  for (const char* bad : {"1,2,3\n", "\n", "x\n", "17,0\n"}) {
    EXPECT_THAT(std::string(read(bad).status().message()), HasSubstr(":6: "));
  }
  std::remove(path.c_str());
  EXPECT_THAT(std::string(ReadDigits(path).status().message()),
              HasSubstr("deploy/digits.sh"));
}

}  // namespace
}  // namespace gossamer
