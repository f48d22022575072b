// The methods that there are: one for every file of this folder that defines
// one.
//
// The build lists the files, so adding a method changes no other file.

#ifndef GOSSAMER_ALGORITHMS_METHOD_REGISTRY_H_
#define GOSSAMER_ALGORITHMS_METHOD_REGISTRY_H_

#include <span>
#include <string_view>
#include <vector>

#include "algorithms/method/method.h"

namespace gossamer {

// By name.
std::span<const Method* const> Methods();

// Null if there is none of that name.
const Method* FindMethod(std::string_view name);

std::vector<std::string_view> MethodNames();

// The rule that a method brings under that name of an optimizer; null if none
// does.
OptimizerMaker OwnRule(std::string_view optimizer);

// The text of a page of this folder; empty if there is none.
std::string_view MethodPage(std::string_view page);

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_METHOD_REGISTRY_H_
