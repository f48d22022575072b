#include "runtime/config/config_keys.h"

#include <algorithm>
#include <cassert>
#include <span>
#include <string>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "algorithms/base/spelling.h"
#include "algorithms/collective/all_reduce.h"
#include "algorithms/compress/codec.h"
#include "algorithms/compress/gradient_compressor.h"
#include "algorithms/method/registry.h"
#include "algorithms/optim/optimizer.h"
#include "gan_models/gan_spec.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"
#include "runtime/config/config_text.h"
#include "runtime/device/device_request.h"
#include "runtime/transport/transport_choice.h"
#include "topology/mixing_schedule.h"

namespace gossamer {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using google::protobuf::SourceLocation;

constexpr unsigned char kDescriptors[] = {
#include "proto/run_descriptor.inc"
};

// A pool of its own: that of the generated code has no comments.
const Descriptor& RunConfigType() {
  static const Descriptor* const type = [] {
    google::protobuf::FileDescriptorSet files;
    const bool parsed = files.ParseFromArray(
        kDescriptors, static_cast<int>(sizeof kDescriptors));
    assert(parsed);
    auto* const pool = new DescriptorPool;
    const FileDescriptor* file = nullptr;
    for (const auto& f : files.file()) file = pool->BuildFile(f);
    assert(parsed && file != nullptr);
    return file->FindMessageTypeByName("RunConfig");
  }();
  return *type;
}

// Lines of one paragraph become one line; an empty line ends a paragraph.
std::string Paragraphs(const std::string& comment) {
  std::vector<std::string> paragraphs = {""};
  for (absl::string_view line : absl::StrSplit(comment, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (line.empty()) {
      if (!paragraphs.back().empty()) paragraphs.emplace_back();
      continue;
    }
    absl::StrAppend(&paragraphs.back(), paragraphs.back().empty() ? "" : " ",
                    line);
  }
  if (paragraphs.back().empty()) paragraphs.pop_back();
  return absl::StrJoin(paragraphs, "\n");
}

template <typename T>
std::string CommentOf(const T& element) {
  SourceLocation location;
  if (!element.GetSourceLocation(&location)) return "";
  return Paragraphs(absl::StrCat(location.leading_comments, "\n",
                                 location.trailing_comments));
}

// The names that a text may be, or may begin with before a colon and options,
// from the part that owns them.
std::string NamesOf(std::string_view path) {
  if (path == "algorithm") return Listed(MethodNames());
  if (path == "mixing.graph") return Listed(GraphNames());
  if (path == "mixing.codec") return Listed(Codec::Names());
  if (path == "mixing.gradient_codec") {
    return Listed(GradientCompressor::Names());
  }
  if (path == "mixing.all_reduce") {
    return absl::StrCat("auto, ", Listed(AllReduce::Names()));
  }
  if (path == "transport") return Listed(kTransportChoices);
  if (path == "resources.device") return std::string(kDeviceRequests);
  if (path == "step.optimizer") return Listed(Optimizer::Names());
  if (path == "step.precision") return Listed(PrecisionNames());
  if (path == "game.gan.model") return Listed(ModelNames());
  if (path == "game.gan.loss") return Listed(LossNames());
  if (path == "game.gan.data.name") return Listed(DataNames());
  return "";
}

std::string TypeOf(const FieldDescriptor& field) {
  const auto of = [&](const char* one, const char* many) {
    return field.is_repeated() ? absl::StrCat("list of ", many)
                               : std::string(one);
  };
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      return of("text", "texts");
    case FieldDescriptor::CPPTYPE_BOOL:
      return "yes or no (true, false)";
    case FieldDescriptor::CPPTYPE_DOUBLE:
    case FieldDescriptor::CPPTYPE_FLOAT:
      return of("number", "numbers");
    case FieldDescriptor::CPPTYPE_ENUM:
      return "one of the values";
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return "group of keys";
    default:
      return of("whole number", "whole numbers");
  }
}

std::string DefaultOf(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      return absl::StrCat("\"", absl::CEscape(field.default_value_string()),
                          "\"");
    case FieldDescriptor::CPPTYPE_BOOL:
      return field.default_value_bool() ? "true" : "false";
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return absl::StrCat(field.default_value_double());
    case FieldDescriptor::CPPTYPE_ENUM:
      return WrittenValue(*field.default_value_enum());
    case FieldDescriptor::CPPTYPE_UINT32:
      return absl::StrCat(field.default_value_uint32());
    case FieldDescriptor::CPPTYPE_UINT64:
      return absl::StrCat(field.default_value_uint64());
    default:
      return "";
  }
}

ConfigKey KeyOf(const FieldDescriptor& field, const std::string& path) {
  ConfigKey key;
  key.path = path;
  key.type = TypeOf(field);
  key.explanation = CommentOf(field);
  if (field.message_type() != nullptr && key.explanation.empty()) {
    key.explanation = CommentOf(*field.message_type());
  }
  key.values = field.enum_type() != nullptr ? WrittenValues(*field.enum_type())
                                            : NamesOf(path);
  if (field.has_default_value()) key.default_value = DefaultOf(field);
  return key;
}

void Collect(const Descriptor& type, const std::string& prefix,
             std::vector<ConfigKey>& keys, std::vector<ConfigKey>& groups) {
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    const std::string path = absl::StrCat(prefix, field.name());
    if (field.message_type() == nullptr) {
      keys.push_back(KeyOf(field, path));
      continue;
    }
    groups.push_back(KeyOf(field, path));
    Collect(*field.message_type(), path + ".", keys, groups);
  }
}

struct Tables {
  std::vector<ConfigKey> keys, groups;
};

const Tables& AllTables() {
  static const Tables* const tables = [] {
    auto* const made = new Tables;
    Collect(RunConfigType(), "", made->keys, made->groups);
    return made;
  }();
  return *tables;
}

}  // namespace

const std::vector<ConfigKey>& ConfigKeys() { return AllTables().keys; }

absl::StatusOr<ConfigKey> FindConfigKey(std::string_view path) {
  std::vector<std::string_view> known;
  for (const auto* table : {&AllTables().keys, &AllTables().groups}) {
    for (const ConfigKey& key : *table) {
      if (key.path == path) return key;
      known.push_back(key.path);
    }
  }
  // "codec" is found as well as "mixing.codec", where only one key ends so.
  std::vector<const ConfigKey*> ending;
  for (const ConfigKey& key : AllTables().keys) {
    if (absl::EndsWith(key.path, absl::StrCat(".", std::string(path)))) {
      ending.push_back(&key);
    }
  }
  if (ending.size() == 1) return *ending[0];
  // Of a part of a name, as "overlap", the keys that have it are meant.
  std::vector<std::string> with;
  for (const std::string_view key : known) {
    if (key.find(path) != key.npos) with.emplace_back(key);
  }
  if (!with.empty()) {
    return absl::NotFoundError(absl::StrCat("there is no key \"",
                                            std::string(path), "\"; there is ",
                                            absl::StrJoin(with, ", ")));
  }
  return absl::NotFoundError(absl::StrCat("there is no key \"",
                                          std::string(path), "\"; ",
                                          Suggestion(path, known)));
}

std::string FirstSentence(std::string_view explanation) {
  // A colon may introduce a list of values; the sentence is what is before it
  // and the list, so only a full stop or the paragraph's end counts.
  size_t end = std::min(explanation.find(". "), explanation.find('\n'));
  if (end == std::string_view::npos) end = explanation.size();
  std::string sentence(explanation.substr(0, end));
  if (absl::EndsWith(sentence, ".")) sentence.pop_back();
  return sentence;
}

std::string ConfigKeysHelp() {
  std::string text;
  for (const ConfigKey& key : ConfigKeys()) {
    absl::StrAppend(
        &text, absl::StrFormat(
                   "  %-36s %s%s\n", key.path, FirstSentence(key.explanation),
                   key.default_value.empty()
                       ? ""
                       : absl::StrCat(" [", key.default_value, "]")));
  }
  return text;
}

}  // namespace gossamer
