// The compressors that there are: one for every file of this folder that
// defines one.
//
// The build lists the files, so adding a compressor changes no other file.
// Codec::Create and GradientCompressor::Create find theirs here.

#ifndef GOSSAMER_ALGORITHMS_COMPRESS_REGISTRY_H_
#define GOSSAMER_ALGORITHMS_COMPRESS_REGISTRY_H_

#include <span>
#include <string_view>

#include "algorithms/compress/compressor.h"

namespace gossamer {

// In the order of their files' names.
std::span<const Compressor* const> Compressors();

// Null if there is none of that name.
const Compressor* FindCompressor(std::string_view name);

// The compressor, perhaps with options, to write in place of a name that
// configurations had before or that a paper has; empty: it is none of these.
std::string_view CompressorReplacement(std::string_view name);

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_COMPRESS_REGISTRY_H_
