// Configuration in protobuf's text format, with errors that a person can act
// on: file, line and column, and the name that was probably meant.
//
// Works by reflection on any message; knows nothing of what the fields mean.

#ifndef GOSSAMER_RUNTIME_CONFIG_CONFIG_TEXT_H_
#define GOSSAMER_RUNTIME_CONFIG_CONFIG_TEXT_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "algorithms/base/problems.h"
#include "google/protobuf/message.h"

namespace gossamer {

// The place where each field was set: "quick.textproto:12:3", or "--set
// mixing.codec=...". Keys are dotted paths: "mixing.codec", "link[2].rtt".
using FieldOrigins = std::map<std::string, std::string>;

// Returns the text of a file.  kInvalidArgument without the file, with
// `advice`, and for one of over 1 MiB, which is not `kind`.
absl::StatusOr<std::string> ReadConfigText(const std::string& path,
                                           const std::string& kind,
                                           const std::string& advice);

// Replaces `message` by what `text` says and adds to `origins`.
// kInvalidArgument, one line per problem, each beginning with
// "file:line:column: ": an unknown key (with the nearest known one), a value of
// the wrong type, a key given twice, bad syntax.
absl::Status ParseTextProto(std::string_view text, std::string_view file,
                            google::protobuf::Message& message,
                            FieldOrigins& origins);

// `assignment` is "path=value": "mixing.codec=innov-int8", strings without
// quotes, lists with commas.  Replaces the value; choosing another member of a
// oneof clears the one before.  kInvalidArgument says what does not fit.
absl::Status SetField(std::string_view assignment,
                      google::protobuf::Message& message,
                      FieldOrigins& origins);

// A value of an enumeration as people write it: one whose name ends in its
// number, as steps_2, is written as that number.
std::string WrittenValue(const google::protobuf::EnumValueDescriptor& value);
// All of an enumeration: "auto, 0, 1".
std::string WrittenValues(const google::protobuf::EnumDescriptor& type);

// Returns kInvalidArgument with a line for each problem, or OK.  A line begins
// with the place where its key, or else the message around it, was set, and
// with `elsewhere` where neither was.
absl::Status AtOrigins(Problems problems, const FieldOrigins& origins,
                       std::string_view elsewhere = "");

// Writes every field's default into it where nothing is set, in all messages
// but those of oneofs that are not chosen.  Clears texts set to "" that have
// no default, so that equal meanings are equal messages.
void FillDefaults(google::protobuf::Message& message);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CONFIG_CONFIG_TEXT_H_
