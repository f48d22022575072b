// Lists of algorithms or methods, options included.

#include "runtime/cli/variants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace gossamer {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

RunConfig Given() {
  RunConfig given;
  given.set_algorithm("dp-oadam");
  return given;
}

std::vector<std::string> NamesOf(const std::vector<Variant>& variants) {
  std::vector<std::string> names;
  for (const Variant& c : variants) names.push_back(c.name);
  return names;
}

TEST(Variants, AlgorithmsKeepTheCommasOfTheirOptions) {
  const auto made =
      VariantsOf({"dp-oadam+mixing.codec=innov-topk:k=9", "least=16",
                  "cp-oadam", "cp-oadam+mixing.gradient_codec=lgc:rate=100",
                  "full=50", "learn=9+step.n_critic=1"},
                 {}, Given());
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_THAT(
      NamesOf(*made),
      ElementsAre("dp-oadam+mixing.codec=innov-topk:k=9,least=16", "cp-oadam",
                  "cp-oadam+mixing.gradient_codec=lgc:rate=100,full=50,"
                  "learn=9+step.n_critic=1"));
  EXPECT_THAT((*made)[0].changes,
              ElementsAre("algorithm=dp-oadam",
                          "mixing.codec=innov-topk:k=9,least=16"));
  EXPECT_THAT((*made)[2].changes, Contains("step.n_critic=1"));
}

TEST(Variants, ColdsStepSizeIsOfTheCodecThatItGets) {
  RunConfig given = Given();
  given.mutable_mixing()->set_codec("dyna");
  const auto made =
      VariantsOf({"cold", "cold+mixing.codec=innov-int4"}, {}, given);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_THAT((*made)[0].changes, Contains("mixing.gamma=0.05"));
  EXPECT_THAT((*made)[1].changes, Contains("mixing.gamma=0.5"));
}

TEST(Variants, MethodsMayHaveOptions) {
  const auto made = VariantsOf({},
                               {"innov-topk:k=32", "least=16", "cold",
                                "innov-int4:fragments=2", "adacomp"},
                               Given());
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_THAT(NamesOf(*made), ElementsAre("innov-topk:k=32,least=16", "cold",
                                          "innov-int4:fragments=2", "adacomp"));
  EXPECT_THAT((*made)[0].changes,
              Contains("mixing.codec=innov-topk:k=32,least=16"));
  EXPECT_THAT((*made)[2].changes,
              Contains("mixing.codec=innov-int4:fragments=2"));
  EXPECT_THAT((*made)[3].changes, Contains("mixing.gradient_codec=adacomp"));
}

TEST(Variants, AllMeansEveryMethodOfTheCatalogue) {
  const auto made = VariantsOf({}, {"all"}, Given());
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_THAT(NamesOf(*made),
              AllOf(Contains("cold"), Contains("lgc"), Contains("dense-f32"),
                    Contains("locality-skewed"), Contains("datalens"),
                    Not(Contains("all"))));
  EXPECT_THAT(
      std::string(VariantsOf({}, {"cold", "all"}, Given()).status().message()),
      HasSubstr("name no others"));
}

TEST(Variants, AnUnknownMethodOrOptionIsRefusedWithTheReason) {
  const auto why = [](const std::string& method) {
    return std::string(VariantsOf({}, {method}, Given()).status().message());
  };
  EXPECT_THAT(why("dposg:theta=2"), HasSubstr("dposg has no options"));
  EXPECT_THAT(why("colt:theta=2"), HasSubstr("no method is called \"colt\""));
  EXPECT_THAT(why("colt"), HasSubstr("did you mean \"cold\"?"));
  EXPECT_THAT(why("choco-int4:least=16"), HasSubstr("write \"innov-int4\""));
}

// Two equal runs would look like two seeds without any spread.
TEST(Variants, AVariantNamedTwiceIsRefused) {
  for (const auto& [algorithms, methods] :
       {std::pair<std::vector<std::string>, std::vector<std::string>>(
            {}, {"dense-f32", "cold", "dense-f32"}),
        {{"dp-oadam", "dp-oadam"}, {}}}) {
    EXPECT_THAT(
        std::string(
            VariantsOf(algorithms, methods, Given()).status().message()),
        HasSubstr("is named twice"));
  }
}

// A file with sgd compares sgd with sgd, unless an algorithm is its optimizer.
TEST(Variants, TheFilesOptimizerStaysUnlessTheAlgorithmIsOne) {
  const auto changes = [](const std::string& of_file, const std::string& name) {
    RunConfig given;
    given.set_algorithm(of_file);
    given.mutable_step()->set_optimizer("sgd");
    return (*VariantsOf({name}, {}, given))[0].changes;
  };
  const auto own = Contains("step.optimizer=");
  for (const char* name : {"rand-dp-oadam", "cp-oadam"}) {
    EXPECT_THAT(changes("dp-oadam", name), Not(own)) << name;
    EXPECT_THAT(changes("cold", name), own) << name;
  }
  EXPECT_THAT(changes("dp-oadam", "cold"), own);
  EXPECT_THAT(changes("dp-oadam", "dposg"), own);
}

TEST(Variants, SitesAreHalvesWhereTheFileHasNone) {
  RunConfig eight = Given();
  eight.set_peers(8);
  const auto made = VariantsOf({}, {"locality-skewed"}, eight);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_THAT((*made)[0].changes, Contains("mixing.sites=near:1-4 far:5-8"));
  eight.mutable_mixing()->set_sites("a:1-6 b:7-8");
  EXPECT_THAT((*VariantsOf({}, {"locality-skewed"}, eight))[0].changes,
              Not(Contains(HasSubstr("mixing.sites"))));
}

}  // namespace
}  // namespace gossamer
