#include "runtime/base/safetensors.h"

#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "algorithms/base/status_macros.h"
#include "nlohmann/json.hpp"
#include "runtime/base/durable_file.h"

// A file is: u64 length of the header, the header (JSON, padded with blanks to
// a multiple of 8), the tensors' bytes.  Header and values are little-endian.
static_assert(std::endian::native == std::endian::little);

namespace gossamer {
namespace {

using nlohmann::json;

// The length is the file's claim; no model has as many tensors.
constexpr uint64_t kMaxHeader = 16 << 20;
constexpr size_t kMaxDimensions = 8;
constexpr absl::string_view kMetadata = "__metadata__";

struct Entry {
  std::string name;
  bool is_float = false;
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;  // bytes, from the end of the header
};

absl::Status Bad(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("not a safetensors file: ", what));
}

std::string Quoted(absl::string_view name) {
  return absl::StrCat("tensor \"", absl::CHexEscape(name.substr(0, 80)), "\"");
}

// Returns the number of bytes of a tensor of this shape, if it fits 62 bits.
std::optional<uint64_t> ByteSize(const std::vector<int64_t>& shape,
                                 uint64_t element) {
  // The product of dimensions that each fit may overflow 64 bits.
  unsigned __int128 n = element;
  for (int64_t d : shape) {
    n *= static_cast<uint64_t>(d);
    if (n >> 62 != 0) return std::nullopt;
  }
  return static_cast<uint64_t>(n);
}

// Parses the header, and refuses a repeated key and deeper nesting than the
// format has.  A plain DOM parse would keep the last of two equal keys.
std::optional<json> ParseHeader(std::string_view text) {
  std::vector<std::set<std::string>> keys;
  bool good = true;
  const auto check = [&](int depth, json::parse_event_t event, json& parsed) {
    // Deep nesting would use up the parser's stack.
    if (depth > 3) good = false;
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key) {
      good &= keys.back().insert(parsed.get<std::string>()).second;
    }
    return good;
  };
  json header = json::parse(text.begin(), text.end(), check,
                            /*allow_exceptions=*/false);
  if (!good || !header.is_object()) return std::nullopt;
  return header;
}

bool IsName(absl::string_view name) {
  return !name.empty() && name != kMetadata &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return c >= 32 && c < 127; });
}

absl::StatusOr<Entry> ParseEntry(const std::string& name, const json& value) {
  if (!IsName(name)) {
    return Bad(absl::StrCat(Quoted(name), " has no name in printable ASCII"));
  }
  // Unknown keys are refused: a reader that passes over what it does not know
  // may misread what it does.
  if (!value.is_object() || value.size() != 3 || !value.contains("dtype") ||
      !value.contains("shape") || !value.contains("data_offsets")) {
    return Bad(absl::StrCat(Quoted(name),
                            " is not {dtype, shape, data_offsets} alone"));
  }
  Entry entry;
  entry.name = name;
  const json& dtype = value["dtype"];
  if (dtype != "F32" && dtype != "U8") {
    return Bad(absl::StrCat(Quoted(name), " is neither F32 nor U8"));
  }
  entry.is_float = dtype == "F32";
  const json& shape = value["shape"];
  if (!shape.is_array() || shape.size() > kMaxDimensions) {
    return Bad(absl::StrCat(Quoted(name), " has no shape of at most ",
                            kMaxDimensions, " dimensions"));
  }
  for (const json& d : shape) {
    if (!d.is_number_unsigned() || d.get<uint64_t>() >> 62 != 0) {
      return Bad(absl::StrCat(Quoted(name), " has a dimension out of range"));
    }
    entry.shape.push_back(d.get<int64_t>());
  }
  const json& offsets = value["data_offsets"];
  if (!offsets.is_array() || offsets.size() != 2 ||
      !offsets[0].is_number_unsigned() || !offsets[1].is_number_unsigned()) {
    return Bad(absl::StrCat(Quoted(name), " has no two offsets"));
  }
  entry.begin = offsets[0].get<uint64_t>();
  entry.end = offsets[1].get<uint64_t>();
  const auto size = ByteSize(entry.shape, entry.is_float ? 4 : 1);
  if (!size || entry.end < entry.begin || entry.end - entry.begin != *size) {
    return Bad(absl::StrCat(Quoted(name), " has offsets that do not fit it"));
  }
  return entry;
}

absl::Status ParseMetadata(const json& value,
                           std::map<std::string, std::string>& metadata) {
  if (!value.is_object()) return Bad("metadata is not an object");
  for (const auto& [key, text] : value.items()) {
    if (!text.is_string()) return Bad("metadata holds something but strings");
    metadata[key] = text.get<std::string>();
  }
  return absl::OkStatus();
}

// Sorts the entries by their bytes, which they must cover exactly once: gaps
// could hide data, and overlaps would make two tensors of the same bytes.
absl::Status CheckCover(std::vector<Entry>& entries, uint64_t size) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    // Tensors without bytes begin where another one does, and come before it.
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  uint64_t end = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != end) {
      return Bad(absl::StrCat(Quoted(entry.name), " begins at byte ",
                              entry.begin, " where ", end, " is due"));
    }
    end = entry.end;
  }
  if (end != size) {
    return Bad(absl::StrCat("the tensors take ", end, " bytes, the file has ",
                            size, "; it may have been cut"));
  }
  return absl::OkStatus();
}

absl::Status CheckName(absl::string_view name, std::set<std::string>& seen) {
  if (!IsName(name)) {
    return absl::InvalidArgumentError(absl::StrCat(
        Quoted(name), ": a name is printable ASCII and not ", kMetadata));
  }
  if (!seen.insert(std::string(name)).second) {
    return absl::InvalidArgumentError(
        absl::StrCat(Quoted(name), " is given twice"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> MakeHeader(const SafetensorsView& tensors) {
  json header = json::object();
  std::set<std::string> seen;
  uint64_t offset = 0;
  const auto add = [&](const std::string& name, const char* dtype,
                       const std::vector<int64_t>& shape, uint64_t size) {
    header[name] = {{"dtype", dtype},
                    {"shape", shape},
                    {"data_offsets", {offset, offset + size}}};
    offset += size;
  };
  for (const auto& t : tensors.floats) {
    GOSSAMER_RETURN_IF_ERROR(CheckName(t.name, seen));
    const bool negative = std::any_of(t.shape.begin(), t.shape.end(),
                                      [](int64_t d) { return d < 0; });
    if (negative || t.shape.size() > kMaxDimensions ||
        ByteSize(t.shape, 4) != t.values.size_bytes()) {
      return absl::InvalidArgumentError(
          absl::StrCat(Quoted(t.name), ": its shape does not fit its ",
                       t.values.size(), " values"));
    }
    add(t.name, "F32", t.shape, t.values.size_bytes());
  }
  for (const auto& t : tensors.bytes) {
    GOSSAMER_RETURN_IF_ERROR(CheckName(t.name, seen));
    add(t.name, "U8", {static_cast<int64_t>(t.values.size())}, t.values.size());
  }
  if (!tensors.metadata.empty()) {
    header[std::string(kMetadata)] = tensors.metadata;
  }
  std::string text = header.dump(-1, ' ', /*ensure_ascii=*/true,
                                 json::error_handler_t::replace);
  // Readers map the values in place, so they must begin at a multiple of 8
  // bytes.
  text.resize((text.size() + 7) / 8 * 8, ' ');
  if (text.size() > kMaxHeader) {
    return absl::InvalidArgumentError("the header would exceed 16 MiB");
  }
  return text;
}

absl::Status SystemError(const std::string& path, absl::string_view doing) {
  return absl::ErrnoToStatus(errno, absl::StrCat(path, ": ", doing));
}

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

}  // namespace

absl::Status WriteSafetensors(
    const std::string& path, const SafetensorsView& tensors,
    const std::function<void(std::string_view)>& written) {
  GOSSAMER_ASSIGN_OR_RETURN(const std::string header, MakeHeader(tensors));
  const uint64_t length = header.size();
  std::vector<std::string_view> parts = {
      std::string_view(reinterpret_cast<const char*>(&length), sizeof(length)),
      header};
  for (const auto& t : tensors.floats) {
    parts.emplace_back(reinterpret_cast<const char*>(t.values.data()),
                       t.values.size_bytes());
  }
  for (const auto& t : tensors.bytes) {
    parts.emplace_back(reinterpret_cast<const char*>(t.values.data()),
                       t.values.size());
  }
  // Readers see the old file or the whole new one, never a part.
  const std::string aside = path + ".partial";
  absl::Status status =
      WriteDurably(aside, parts, O_CREAT | O_TRUNC, 0644, written);
  if (status.ok() && std::rename(aside.c_str(), path.c_str()) != 0) {
    status = SystemError(path, "cannot rename onto");
  }
  // The space of a half-written file is given back.
  if (!status.ok()) std::remove(aside.c_str());
  return status;
}

// The bytes are those of WriteSafetensors(), for a state that travels instead
// of being saved.
absl::StatusOr<std::string> FormatSafetensors(const SafetensorsView& tensors) {
  GOSSAMER_ASSIGN_OR_RETURN(const std::string header, MakeHeader(tensors));
  std::string file;
  const auto put = [&file](const void* data, size_t size) {
    file.append(static_cast<const char*>(data), size);
  };
  const uint64_t length = header.size();
  put(&length, sizeof(length));
  file += header;
  for (const auto& t : tensors.floats) {
    put(t.values.data(), t.values.size_bytes());
  }
  for (const auto& t : tensors.bytes) put(t.values.data(), t.values.size());
  return file;
}

absl::StatusOr<Safetensors> ParseSafetensors(std::span<const std::byte> file) {
  uint64_t length = 0;
  if (file.size() < sizeof(length)) return Bad("shorter than 8 bytes");
  std::memcpy(&length, file.data(), sizeof(length));
  const std::span<const std::byte> rest = file.subspan(sizeof(length));
  // The length is checked against the file before anything is allocated for it.
  if (length > kMaxHeader || length > rest.size()) {
    return Bad(absl::StrCat("a header of ", length, " bytes in a file of ",
                            file.size()));
  }
  const std::optional<json> header = ParseHeader(
      std::string_view(reinterpret_cast<const char*>(rest.data()), length));
  if (!header) return Bad("the header is not a flat JSON object of tensors");
  Safetensors result;
  std::vector<Entry> entries;
  for (const auto& [name, value] : header->items()) {
    if (name == kMetadata) {
      GOSSAMER_RETURN_IF_ERROR(ParseMetadata(value, result.metadata));
      continue;
    }
    GOSSAMER_ASSIGN_OR_RETURN(Entry entry, ParseEntry(name, value));
    if (!entry.is_float && entry.shape.size() != 1) {
      return Bad(absl::StrCat(Quoted(name), " is U8 and not one-dimensional"));
    }
    entries.push_back(std::move(entry));
  }
  const std::span<const std::byte> data = rest.subspan(length);
  GOSSAMER_RETURN_IF_ERROR(CheckCover(entries, data.size()));
  for (Entry& entry : entries) {
    const auto bytes = data.subspan(entry.begin, entry.end - entry.begin);
    if (!entry.is_float) {
      result.bytes[entry.name].assign(bytes.begin(), bytes.end());
      continue;
    }
    FloatTensor& tensor = result.floats[entry.name];
    tensor.shape = std::move(entry.shape);
    // The bytes are at hand by now, so the memory is in proportion to the file.
    tensor.values.resize(bytes.size() / sizeof(float));
    if (!bytes.empty()) {
      std::memcpy(tensor.values.data(), bytes.data(), bytes.size());
    }
  }
  return result;
}

absl::StatusOr<Safetensors> ReadSafetensors(const std::string& path) {
  const File file(std::fopen(path.c_str(), "rb"));
  if (file == nullptr) return SystemError(path, "cannot open");
  struct stat info;
  if (fstat(fileno(file.get()), &info) != 0) return SystemError(path, "stat");
  // A pipe or a device could block the reader or never end.
  if (!S_ISREG(info.st_mode)) {
    return absl::DataLossError(absl::StrCat(path, ": not a regular file"));
  }
  std::vector<std::byte> bytes(static_cast<size_t>(info.st_size));
  if (std::fread(bytes.data(), 1, bytes.size(), file.get()) != bytes.size()) {
    return absl::DataLossError(absl::StrCat(path, ": cannot be read whole"));
  }
  absl::StatusOr<Safetensors> result = ParseSafetensors(bytes);
  if (!result.ok()) {
    return absl::Status(result.status().code(),
                        absl::StrCat(path, ": ", result.status().message()));
  }
  return result;
}

}  // namespace gossamer
