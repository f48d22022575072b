// Names in texts for people: a list of those that are known, and the one that
// was probably meant by another.
//
// This header is pure and knows nothing of what is named.

#ifndef GOSSAMER_ALGORITHMS_BASE_SPELLING_H_
#define GOSSAMER_ALGORITHMS_BASE_SPELLING_H_

#include <span>
#include <string>
#include <string_view>

namespace gossamer {

// "a, b, c".
std::string Listed(std::span<const std::string_view> names);

// The nearest of `known` by edit distance, if it is near; else "".
std::string Nearest(std::string_view word,
                    std::span<const std::string_view> known);

// "did you mean \"x\"?" if one is near, else "known: a, b, c".
std::string Suggestion(std::string_view word,
                       std::span<const std::string_view> known);

// "known: a, b, c (did you mean \"b\"?)", with the question if one is near.
std::string KnownAndNearest(std::string_view word,
                            std::span<const std::string_view> known);

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_BASE_SPELLING_H_
