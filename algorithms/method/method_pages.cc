// The pages of algorithms/method, as they were built.

#include <algorithm>
#include <iterator>
#include <string_view>

#include "algorithms/method/catalogue.h"

namespace gossamer {
namespace {

struct Page {
  std::string_view name, text;
};
constexpr Page kPages[] = {
#include "algorithms/method/pages.inc"
};

}  // namespace

std::string_view MethodPage(std::string_view page) {
  const auto it = std::ranges::find(kPages, page, &Page::name);
  return it == std::end(kPages) ? std::string_view() : it->text;
}

}  // namespace gossamer
