// The catalogue of methods against the code: every name in it is a valid run,
// and has a page.

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "algorithms/compress/codec.h"
#include "algorithms/compress/gradient_compressor.h"
#include "algorithms/method/catalogue.h"
#include "algorithms/method/registry.h"
#include "algorithms/optim/optimizer.h"
#include "gtest/gtest.h"
#include "runtime/config/run_config.h"

namespace gossamer {
namespace methods_test {

TEST(CatalogueTest, EveryMethodIsAValidRunWithAPage) {
  std::set<std::string_view> names;
  for (const CatalogueEntry& m : Catalogue()) {
    SCOPED_TRACE(std::string(m.name));
    EXPECT_TRUE(names.insert(m.name).second);
    EXPECT_EQ(FindInCatalogue(m.name), &m);
    for (const std::string_view field :
         {m.kind, m.summary, m.property, m.bits, m.state, m.gamma, m.source}) {
      EXPECT_FALSE(field.empty());
    }
    const std::string page(MethodPage(m.page));
    for (const char* part : {"**Idea.**", "**When.**", "**Measured.**",
                             "**Limits.**", "| --- |"}) {
      EXPECT_TRUE(absl::StrContains(page, part)) << part;
    }
    EXPECT_TRUE(absl::StrContains(page, "**Formula.**") ||
                absl::StrContains(page, "```"));
    EXPECT_LE(std::ranges::count(page, '\n'), 75) << "a page";
    EXPECT_FALSE(m.settings.empty());
    const auto config = ParseRunConfig("", "catalogue", m.settings);
    EXPECT_TRUE(config.ok()) << config.status();
  }
  EXPECT_EQ(FindInCatalogue("no such method"), nullptr);
  EXPECT_EQ(MethodPage("no such page"), "");
}

TEST(CatalogueTest, TheCatalogueListsEveryMethodAndCodecOfTheCode) {
  std::set<std::string> algorithms, codecs, gradients;
  for (const CatalogueEntry& m : Catalogue()) {
    const auto config = ParseRunConfig("", "catalogue", m.settings);
    if (!config.ok()) continue;
    algorithms.insert(config->algorithm());
    gradients.insert(config->mixing().gradient_codec());
    const std::string& codec = config->mixing().codec();
    codecs.insert(codec.substr(0, codec.find(':')));
  }
  for (const std::string_view name : MethodNames()) {
    EXPECT_TRUE(algorithms.contains(std::string(name))) << name;
  }
  for (const std::string_view name : GradientCompressor::Names()) {
    EXPECT_TRUE(gradients.contains(std::string(name))) << name;
  }
  for (const std::string_view name : Codec::Names()) {
    EXPECT_TRUE(codecs.contains(std::string(name))) << name;
  }
}

}  // namespace methods_test
}  // namespace gossamer
