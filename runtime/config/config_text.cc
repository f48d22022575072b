#include "runtime/config/config_text.h"

#include <algorithm>
#include <fstream>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "algorithms/base/spelling.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/text_format.h"
#include "runtime/base/protobuf_errors.h"
#include "runtime/config/old_keys.h"

namespace gossamer {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using google::protobuf::TextFormat;

constexpr size_t kMaxBytes = 1 << 20;  // of a file

std::vector<std::string_view> FieldNames(const Descriptor& type) {
  std::vector<std::string_view> names;
  for (int i = 0; i < type.field_count(); ++i) {
    names.push_back(type.field(i)->name());
  }
  return names;
}

// The part of `text` between the first pair of quotes, which is removed.
std::string TakeQuoted(std::string& text) {
  const size_t begin = text.find('"');
  const size_t end = text.find('"', begin + 1);
  if (begin == std::string::npos || end == std::string::npos) return "";
  std::string quoted = text.substr(begin + 1, end - begin - 1);
  text.erase(0, end + 1);
  return quoted;
}

// " in mixing" for MixingConfig: people know the key of a group, not its
// message.  Empty for a file's own message, which has no key.
std::string InGroup(const Descriptor& type) {
  absl::string_view name = type.name();
  absl::ConsumeSuffix(&name, "Config");
  const bool whole = name == "Run" || name == "Scenario";
  if (whole) return "";
  // Two games have these keys.
  if (name == "Saddle") name = "bilinear or quadratic";
  return absl::StrCat(" in ", absl::AsciiStrToLower(name));
}

std::string NoSuchField(const Descriptor& type, std::string_view name) {
  const std::string_view advice =
      KeyReplacement(std::string(type.name()), name);
  if (!advice.empty()) {
    return absl::StrCat("\"", std::string(name), "\" is no key any more; ",
                        std::string(advice));
  }
  return absl::StrCat("there is no key \"", std::string(name), "\"",
                      InGroup(type), "; ", Suggestion(name, FieldNames(type)));
}

std::string NoSuchValue(const std::string& field, const std::string& value) {
  const auto* file =
      DescriptorPool::generated_pool()->FindFileByName("proto/run.proto");
  for (int i = 0; file != nullptr && i < file->message_type_count(); ++i) {
    const auto* found = file->message_type(i)->FindFieldByName(field);
    if (found != nullptr && found->enum_type() != nullptr) {
      return absl::StrCat(field, " is \"", value,
                          "\"; known: ", WrittenValues(*found->enum_type()));
    }
  }
  return absl::StrCat(field, " cannot be \"", value, "\"");
}

// Turns protobuf's reports into lines for people.
class ErrorLines : public ParseErrors {
 public:
  ErrorLines(std::string_view text, std::string_view file)
      : lines_(absl::StrSplit(std::string(text), '\n')), file_(file) {}

  std::string Text() const { return absl::StrJoin(out_, "\n"); }

 private:
  static constexpr size_t kMax = 10;

  void OnError(int line, int column, const std::string& message) override {
    if (out_.size() >= kMax) return;
    std::string rest = message;
    std::string explained = message;
    if (absl::StartsWith(message, "Message type \"") &&
        absl::StrContains(message, "\" has no field named \"")) {
      const Descriptor* type =
          DescriptorPool::generated_pool()->FindMessageTypeByName(
              TakeQuoted(rest));
      const std::string name = TakeQuoted(rest);
      if (type != nullptr) explained = NoSuchField(*type, name);
      StepBackTo(name, line, column);
    } else if (absl::StartsWith(message, "Unknown enumeration value of")) {
      const std::string value = TakeQuoted(rest);
      explained = NoSuchValue(TakeQuoted(rest), value);
    }
    out_.push_back(
        absl::StrCat(file_, ":", line + 1, ":", column + 1, ": ", explained));
  }

  // The parser reports an unknown key at the token after it.
  void StepBackTo(const std::string& name, int& line, int& column) const {
    for (int l = std::min<int>(line, lines_.size() - 1); l >= 0; --l) {
      const size_t found = lines_[l].rfind(name);
      if (found == std::string::npos) continue;
      line = l;
      column = static_cast<int>(found);
      return;
    }
  }

  const std::vector<std::string> lines_;
  const std::string file_;
  std::vector<std::string> out_;
};

std::string OriginText(std::string_view file,
                       const TextFormat::ParseLocation& at) {
  return absl::StrCat(std::string(file), ":", at.line + 1, ":", at.column + 1);
}

// Returns where a field was set; `index` is -1 if it is not repeated.  Newer
// releases of protobuf say it at more length, and call the former deprecated.
template <typename Tree>
TextFormat::ParseLocation LocationOf(const Tree& tree,
                                     const FieldDescriptor* field, int index) {
  if constexpr (requires { tree.GetFieldLocation(field); }) {
    const auto at = index < 0 ? tree.GetFieldLocation(field)
                              : tree.GetFieldLocation(field, index);
    return at.ok() ? at->full.start : TextFormat::ParseLocation();
  } else {
    return tree.GetLocation(field, index);
  }
}

void CollectOrigins(const Message& message,
                    const TextFormat::ParseInfoTree& tree,
                    const std::string& prefix, std::string_view file,
                    FieldOrigins& origins) {
  std::vector<const FieldDescriptor*> set;
  message.GetReflection()->ListFields(message, &set);
  for (const FieldDescriptor* field : set) {
    const std::string path = absl::StrCat(prefix, field->name());
    const auto at = LocationOf(tree, field, field->is_repeated() ? 0 : -1);
    origins[path] = OriginText(file, at);
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      CollectOrigins(message.GetReflection()->GetMessage(message, field),
                     *tree.GetTreeForNested(field, -1), path + ".", file,
                     origins);
      continue;
    }
    for (int i = 0; i < message.GetReflection()->FieldSize(message, field);
         ++i) {
      const std::string element = absl::StrCat(path, "[", i, "]");
      origins[element] = OriginText(file, LocationOf(tree, field, i));
      CollectOrigins(
          message.GetReflection()->GetRepeatedMessage(message, field, i),
          *tree.GetTreeForNested(field, i), element + ".", file, origins);
    }
  }
}

std::string Expected(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT32:
    case FieldDescriptor::CPPTYPE_UINT64:
      return "a whole number, 0 or more";
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return "a number";
    case FieldDescriptor::CPPTYPE_BOOL:
      return "true or false";
    case FieldDescriptor::CPPTYPE_ENUM:
      return absl::StrCat("one of ", WrittenValues(*field.enum_type()));
    default:
      return "text";
  }
}

bool ParseValue(const std::string& value, const FieldDescriptor& field,
                Message& message) {
  const bool text = field.cpp_type() == FieldDescriptor::CPPTYPE_STRING;
  ParseErrors dropped;
  TextFormat::Parser parser;
  parser.RecordErrorsTo(&dropped);
  return parser.ParseFieldValueFromString(
      text ? absl::StrCat("\"", absl::CEscape(value), "\"") : value, &field,
      &message);
}

}  // namespace

absl::StatusOr<std::string> ReadConfigText(const std::string& path,
                                           const std::string& kind,
                                           const std::string& advice) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": cannot be read; ", advice));
  }
  // One byte more than the limit is read, to notice a file that is longer.
  std::string text(kMaxBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > kMaxBytes || file.bad()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": not ", kind, " (over 1 MiB or unreadable)"));
  }
  return text;
}

std::string WrittenValue(const google::protobuf::EnumValueDescriptor& value) {
  const std::string number = std::to_string(value.number());
  return absl::EndsWith(value.name(), "_" + number) ? number
                                                    : std::string(value.name());
}

std::string WrittenValues(const google::protobuf::EnumDescriptor& type) {
  std::vector<std::string> values;
  for (int i = 0; i < type.value_count(); ++i) {
    values.push_back(WrittenValue(*type.value(i)));
  }
  return absl::StrJoin(values, ", ");
}

absl::Status ParseTextProto(std::string_view text, std::string_view file,
                            Message& message, FieldOrigins& origins) {
  ErrorLines errors(text, file);
  TextFormat::ParseInfoTree tree;
  TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  parser.WriteLocationsTo(&tree);
  if (!parser.ParseFromString(std::string(text), &message)) {
    return absl::InvalidArgumentError(errors.Text());
  }
  CollectOrigins(message, tree, "", file, origins);
  return absl::OkStatus();
}

absl::Status SetField(std::string_view assignment, Message& message,
                      FieldOrigins& origins) {
  const std::string origin = absl::StrCat("--set ", std::string(assignment));
  const size_t equals = assignment.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        origin, ": write path=value, for example mixing.codec=innov-int8"));
  }
  const std::string path(assignment.substr(0, equals));
  const std::string value(assignment.substr(equals + 1));
  const std::vector<std::string> names = absl::StrSplit(path, '.');

  Message* owner = &message;
  const FieldDescriptor* field = nullptr;
  for (const std::string& name : names) {
    if (field != nullptr) {
      if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
        return absl::InvalidArgumentError(
            absl::StrCat(origin, ": ", field->name(),
                         " is a value; it has no \"", name, "\""));
      }
      owner = owner->GetReflection()->MutableMessage(owner, field);
    }
    field = owner->GetDescriptor()->FindFieldByName(name);
    if (field == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(
          origin, ": ", NoSuchField(*owner->GetDescriptor(), name)));
    }
  }
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
    return absl::InvalidArgumentError(absl::StrCat(
        origin, ": ", path, " is a group; set one of its fields, as in ", path,
        ".", field->message_type()->field(0)->name(), "=..."));
  }
  owner->GetReflection()->ClearField(owner, field);
  std::vector<std::string> values = {value};
  if (field->is_repeated()) {
    values = absl::StrSplit(value, ',', absl::SkipEmpty());
  }
  for (const std::string& v : values) {
    if (!ParseValue(v, *field, *owner)) {
      return absl::InvalidArgumentError(
          absl::StrCat(origin, ": \"", v, "\" is not ", Expected(*field),
                       ", which ", path, " takes"));
    }
  }
  origins[path] = origin;
  return absl::OkStatus();
}

absl::Status AtOrigins(Problems problems, const FieldOrigins& origins,
                       std::string_view elsewhere) {
  Problems placed;
  for (Problem& problem : problems.Take()) {
    std::string around = problem.key;
    auto origin = origins.find(around);
    for (size_t dot = around.rfind('.');
         origin == origins.end() && dot != std::string::npos;
         dot = around.rfind('.')) {
      around.resize(dot);
      origin = origins.find(around);
    }
    const std::string place =
        origin == origins.end() ? std::string(elsewhere) : origin->second;
    placed.Refuse(
        place.empty() ? problem.key : absl::StrCat(place, ": ", problem.key),
        problem.what);
  }
  return placed.ToStatus();
}

void FillDefaults(Message& message) {
  const Descriptor& type = *message.GetDescriptor();
  const Reflection& reflection = *message.GetReflection();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    if (field.is_repeated()) continue;
    const bool set = reflection.HasField(message, &field);
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      if (set || field.containing_oneof() == nullptr) {
        FillDefaults(*reflection.MutableMessage(&message, &field));
      }
    } else if (!set && field.has_default_value()) {
      // Text is the one form in which protobuf hands out a default of any
      // type.
      std::string value;
      TextFormat::PrintFieldValueToString(message, &field, -1, &value);
      (void)TextFormat::Parser().ParseFieldValueFromString(value, &field,
                                                           &message);
    } else if (set && !field.has_default_value() &&
               field.cpp_type() == FieldDescriptor::CPPTYPE_STRING &&
               reflection.GetString(message, &field).empty()) {
      reflection.ClearField(&message, &field);
    }
  }
}

}  // namespace gossamer
