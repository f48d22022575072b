// A folder for what a target's decoder reads from files.

#ifndef GOSSAMER_TESTS_FUZZ_FOLDER_H_
#define GOSSAMER_TESTS_FUZZ_FOLDER_H_

#include <string>

#include "tests/fuzz/fuzz.h"

namespace gossamer::fuzz {

// One a process, gone with it; in memory if that is to be had.
const std::string& Folder();

// Makes or replaces a file of it; returns its path.
std::string Write(const std::string& name, Bytes bytes);

}  // namespace gossamer::fuzz

#endif  // GOSSAMER_TESTS_FUZZ_FOLDER_H_
