// The catalogue of methods against the code it speaks of.

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "algorithms/codec/codec.h"
#include "algorithms/gradients/gradient_compressor.h"
#include "algorithms/methods/catalogue.h"
#include "algorithms/optim/optimizer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/peer/run_config.h"

namespace gossamer {
namespace {

using testing::HasSubstr;

std::vector<std::string> SettingsOf(const Method& method) {
  return {method.settings.begin(), method.settings.end()};
}

TEST(CatalogueTest, EveryMethodIsAValidRunWithAPage) {
  std::set<std::string_view> names;
  for (const Method& m : Methods()) {
    SCOPED_TRACE(std::string(m.name));
    EXPECT_TRUE(names.insert(m.name).second);
    EXPECT_EQ(FindMethod(m.name), &m);
    for (const std::string_view field :
         {m.kind, m.summary, m.property, m.bits, m.state, m.gamma, m.source}) {
      EXPECT_FALSE(field.empty());
    }
    EXPECT_THAT(std::string(MethodPage(m.page)), HasSubstr("**Limits.**"));
    if (m.kind == "privacy") continue;  // a program of its own
    EXPECT_FALSE(m.settings.empty());
    const auto config = ParseRunConfig("", "catalogue", SettingsOf(m));
    EXPECT_TRUE(config.ok()) << config.status();
  }
  EXPECT_EQ(FindMethod("no such method"), nullptr);
  EXPECT_EQ(MethodPage("no such page"), "");
}

TEST(CatalogueTest, WhatTheCodeKnowsIsInIt) {
  std::set<std::string> algorithms, codecs, gradients;
  for (const Method& m : Methods()) {
    const auto config = ParseRunConfig("", "catalogue", SettingsOf(m));
    if (!config.ok()) continue;
    algorithms.insert(config->algorithm());
    gradients.insert(config->mixing().gradient_codec());
    const std::string& codec = config->mixing().codec();
    codecs.insert(codec.substr(0, codec.find(':')));
  }
  for (const std::string_view name : AlgorithmNames()) {
    EXPECT_TRUE(algorithms.contains(std::string(name))) << name;
  }
  for (const std::string_view name : GradientCompressor::Names()) {
    EXPECT_TRUE(gradients.contains(std::string(name))) << name;
  }
  for (const std::string_view name : Codec::Names()) {
    EXPECT_TRUE(codecs.contains(std::string(name))) << name;
  }
}

}  // namespace
}  // namespace gossamer
