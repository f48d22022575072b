#include "algorithms/method/registry.h"

#include <algorithm>
#include <iterator>

namespace gossamer {
namespace methods {

// The build writes methods.inc from the .cc files of this folder that define a
// method, and pages.inc from its pages: a list that is kept by hand could
// forget one.
#define GOSSAMER_METHOD_FILE(file) extern const Method file;
#include "algorithms/method/methods.inc"
#undef GOSSAMER_METHOD_FILE

}  // namespace methods

namespace {

constexpr const Method* kMethods[] = {
#define GOSSAMER_METHOD_FILE(file) &methods::file,
#include "algorithms/method/methods.inc"
#undef GOSSAMER_METHOD_FILE
};

struct Page {
  std::string_view name, text;
};
constexpr Page kPages[] = {
#include "algorithms/method/pages.inc"
};

}  // namespace

std::span<const Method* const> Methods() { return kMethods; }

const Method* FindMethod(std::string_view name) {
  const auto it = std::ranges::find(
      kMethods, name, [](const Method* method) { return method->name; });
  return it == std::end(kMethods) ? nullptr : *it;
}

std::vector<std::string_view> MethodNames() {
  std::vector<std::string_view> names;
  for (const Method* method : kMethods) names.push_back(method->name);
  return names;
}

OptimizerMaker OwnRule(std::string_view optimizer) {
  for (const Method* method : kMethods) {
    if (method->rule != nullptr && method->defaults.optimizer == optimizer) {
      return method->rule;
    }
  }
  return nullptr;
}

std::string_view MethodPage(std::string_view page) {
  const auto it = std::ranges::find(kPages, page, &Page::name);
  return it == std::end(kPages) ? std::string_view() : it->text;
}

}  // namespace gossamer
