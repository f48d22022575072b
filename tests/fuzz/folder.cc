#include "tests/fuzz/folder.h"

#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace gossamer::fuzz {

const std::string& Folder() {
  static const std::string* const folder = [] {
    const char* const where = std::filesystem::exists("/dev/shm")
                                  ? "/dev/shm/gossamer-fuzz-XXXXXX"
                                  : "/tmp/gossamer-fuzz-XXXXXX";
    std::string name = where;
    Require(::mkdtemp(name.data()) != nullptr, "a folder can be made");
    std::atexit([] { std::filesystem::remove_all(Folder()); });
    return new std::string(name);
  }();
  return *folder;
}

std::string Write(const std::string& name, Bytes bytes) {
  const std::string path = Folder() + "/" + name;
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  return path;
}

}  // namespace gossamer::fuzz
