// A folder for the files that a target's decoder reads.

#ifndef GOSSAMER_TESTS_FUZZ_FOLDER_H_
#define GOSSAMER_TESTS_FUZZ_FOLDER_H_

#include <string>

#include "tests/fuzz/fuzz.h"

namespace gossamer::fuzz {

// One folder for each process, removed at its end; in memory if possible.
const std::string& Folder();

// Makes or replaces a file of the folder; returns its path.
std::string Write(const std::string& name, Bytes bytes);

}  // namespace gossamer::fuzz

#endif  // GOSSAMER_TESTS_FUZZ_FOLDER_H_
