#include "gan_models/data/cifar_files.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "algorithms/base/status_macros.h"
#include "gan_models/data/emoji_list.h"
#include "gan_models/gan_spec.h"

namespace gossamer {
namespace {

// The files of one data set.  Sizes that are known are checked, so that a
// partial download is named before any training.
struct Format {
  std::vector<std::string> train, test;
  std::string names;
  size_t label_bytes = 1;  // the last one counts
  size_t classes = 10;
  int side = 32;
  uint64_t train_records = 0, test_records = 0;  // per file; 0: any
  std::string how_to_get;
};

// Pixels of a side in the pictures of a format; 0 for an unknown one.
int SideOf(std::string_view format) {
  if (format == "emoji-64") return 64;
  if (format == "emoji-128") return 128;
  const bool small =
      format == "emoji-32" || format == "cifar-10" || format == "cifar-100";
  return small ? 32 : 0;
}

absl::StatusOr<Format> FindFormat(const std::string& name,
                                  const std::string& folder) {
  Format f;
  for (int i = 1; i <= 5; ++i) {
    f.train.push_back(absl::StrCat("data_batch_", i, ".bin"));
  }
  f.test = {"test_batch.bin"};
  f.names = "batches.meta.txt";
  f.side = SideOf(name);
  // CIFAR-10's files with as many images as were asked for.
  if (name.starts_with("emoji-") && f.side > 0) {
    f.how_to_get =
        absl::StrCat("make it with: gossamer-models render-emoji --out ",
                     folder.empty() ? "DIR" : folder,
                     f.side == 32 ? "" : absl::StrCat(" --size ", f.side));
    return f;
  }
  f.how_to_get = absl::StrCat("give the folder with the files of ", name,
                              " (binary version) from "
                              "https://www.cs.toronto.edu/~kriz/cifar.html");
  if (name == "cifar-10") {
    f.train_records = f.test_records = 10000;
    return f;
  }
  if (name == "cifar-100") {
    f.train = {"train.bin"};
    f.test = {"test.bin"};
    f.names = "fine_label_names.txt";
    f.label_bytes = 2;
    f.classes = 100;
    f.train_records = 50000;
    f.test_records = 10000;
    return f;
  }
  const std::vector<std::string> known(DataNames().begin(), DataNames().end());
  return absl::InvalidArgumentError(
      absl::StrCat("game.gan.data.name \"", name,
                   "\" is not known; known: ", absl::StrJoin(known, ", ")));
}

absl::StatusOr<std::vector<std::string>> ReadNames(const std::string& path,
                                                   const Format& format) {
  std::ifstream file(path);
  if (!file) {
    return absl::NotFoundError(
        absl::StrCat(path, " is missing; ", format.how_to_get));
  }
  std::vector<std::string> names;
  std::string line;
  while (names.size() < format.classes && std::getline(file, line)) {
    // Lines may end as another system writes them.
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) {
      line.pop_back();
    }
    if (!line.empty()) names.push_back(line);
  }
  if (names.size() != format.classes) {
    return absl::DataLossError(absl::StrCat(
        path, " names ", names.size(), " classes instead of ", format.classes));
  }
  return names;
}

// Whether each class is wanted.
absl::StatusOr<std::vector<bool>> Choose(
    const std::vector<std::string>& names,
    const std::vector<std::string>& classes) {
  GOSSAMER_ASSIGN_OR_RETURN(const std::vector<ImageClass> chosen,
                            ChooseClasses(names, classes));
  std::vector<bool> wanted(names.size());
  for (const ImageClass& c : chosen) wanted[c.number] = true;
  return wanted;
}

// The whole file's size first: an image more or less is noticed before any is
// read.
absl::Status CheckSize(const std::string& path, uint64_t actual,
                       uint64_t record, uint64_t records) {
  if (records > 0 && actual != records * record) {
    return absl::DataLossError(absl::StrCat(
        path, " has ", actual, " bytes instead of ", records * record, " (",
        records, " images); it may be a partial download"));
  }
  if (actual == 0 || actual % record != 0) {
    return absl::DataLossError(absl::StrCat(
        path, " has ", actual, " bytes, which is not a whole number of ",
        record, "-byte images; it was cut"));
  }
  return absl::OkStatus();
}

// Appends the wanted images of one file.  The file is read in pieces, so that
// a class filter also keeps memory small.
absl::Status AppendFile(const std::string& path, const Format& format,
                        uint64_t records, const std::vector<bool>& wanted,
                        ImageSet& set) {
  std::error_code error;
  const uint64_t actual = std::filesystem::file_size(path, error);
  std::ifstream file(path, std::ios::binary);
  if (error || !file) {
    return absl::NotFoundError(
        absl::StrCat(path, " is missing; ", format.how_to_get));
  }
  const size_t record = format.label_bytes + ImageBytes(format.side);
  GOSSAMER_RETURN_IF_ERROR(CheckSize(path, actual, record, records));
  std::vector<char> bytes(record);
  for (uint64_t i = 0; i < actual / record; ++i) {
    if (!file.read(bytes.data(), static_cast<std::streamsize>(record))) {
      return absl::DataLossError(
          absl::StrCat(path, " cannot be read beyond image ", i));
    }
    const auto label = static_cast<uint8_t>(bytes[format.label_bytes - 1]);
    // Labels index the classes from here on.
    if (label >= wanted.size()) {
      return absl::DataLossError(
          absl::StrCat(path, ": image ", i, " has label ", int{label},
                       ", but there are ", wanted.size(), " classes"));
    }
    if (!wanted[label]) continue;
    set.labels.push_back(label);
    set.pixels.insert(
        set.pixels.end(),
        bytes.begin() + static_cast<std::ptrdiff_t>(format.label_bytes),
        bytes.end());
  }
  return absl::OkStatus();
}

// Five train files of emoji are of one size: one that was cut shows.
absl::Status CheckEqualSizes(const std::string& folder,
                             const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    std::error_code error;
    const auto first = std::filesystem::file_size(folder + files[0], error);
    const auto size = std::filesystem::file_size(folder + file, error);
    if (!error && size != first) {
      return absl::DataLossError(absl::StrCat(folder, file, " has ", size,
                                              " bytes and ", files[0], " has ",
                                              first, "; one of them was cut"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<ImageClass>> ReadClasses(
    const std::string& format, const std::string& folder,
    const std::vector<std::string>& classes) {
  GOSSAMER_ASSIGN_OR_RETURN(const Format f, FindFormat(format, folder));
  std::vector<std::string> names;
  if (format.starts_with("emoji-")) {
    names.assign(EmojiClassNames().begin(), EmojiClassNames().end());
  } else {
    GOSSAMER_ASSIGN_OR_RETURN(names,
                              ReadNames(absl::StrCat(folder, "/", f.names), f));
  }
  return ChooseClasses(names, classes);
}

absl::StatusOr<ImageData> ReadImages(const std::string& format,
                                     const std::string& folder,
                                     const std::vector<std::string>& classes) {
  GOSSAMER_ASSIGN_OR_RETURN(const Format f, FindFormat(format, folder));
  if (folder.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("no folder of ", format,
                                                   " is given: set --data (or "
                                                   "game.gan.data.path); ",
                                                   f.how_to_get));
  }
  const std::string prefix = folder + "/";
  ImageData data;
  data.train.side = data.test.side = f.side;
  GOSSAMER_ASSIGN_OR_RETURN(data.class_names, ReadNames(prefix + f.names, f));
  GOSSAMER_ASSIGN_OR_RETURN(const std::vector<bool> wanted,
                            Choose(data.class_names, classes));
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i]) data.classes.push_back(static_cast<int>(i));
  }
  if (f.train_records == 0) {
    // Sizes are not known in advance, but the five files have one in common.
    GOSSAMER_RETURN_IF_ERROR(CheckEqualSizes(prefix, f.train));
  }
  for (const std::string& name : f.train) {
    GOSSAMER_RETURN_IF_ERROR(
        AppendFile(prefix + name, f, f.train_records, wanted, data.train));
  }
  for (const std::string& name : f.test) {
    GOSSAMER_RETURN_IF_ERROR(
        AppendFile(prefix + name, f, f.test_records, wanted, data.test));
  }
  return data;
}

absl::Status WriteCifar10(const std::string& folder, const ImageData& data) {
  const auto write = [&](const std::string& name, const ImageSet& set,
                         size_t begin, size_t end) {
    std::ofstream file(absl::StrCat(folder, "/", name), std::ios::binary);
    for (size_t i = begin; i < end; ++i) {
      file.put(static_cast<char>(set.labels[i]));
      const auto image = set.image(i);
      file.write(reinterpret_cast<const char*>(image.data()),
                 static_cast<std::streamsize>(image.size()));
    }
    return file.flush().good();
  };
  bool good = write("test_batch.bin", data.test, 0, data.test.size());
  // Five files, as in CIFAR-10, so that other programs can read the folder.
  const size_t part = data.train.size() / 5;
  for (size_t i = 0; i < 5; ++i) {
    good = good && write(absl::StrCat("data_batch_", i + 1, ".bin"), data.train,
                         i * part, (i + 1) * part);
  }
  std::ofstream names(absl::StrCat(folder, "/batches.meta.txt"));
  for (const std::string& name : data.class_names) names << name << "\n";
  if (!good || !names.flush()) {
    return absl::InternalError(absl::StrCat(
        "cannot write to ", folder, "; is it writable, and is there room?"));
  }
  return absl::OkStatus();
}

}  // namespace gossamer
