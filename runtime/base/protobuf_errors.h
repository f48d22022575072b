// The errors that protobuf itself tells of texts and messages, collected or kept
// from stderr in the spellings of protobuf 3.21 and of its newer releases.
//
// Header only.  A target that includes it links protobuf.

#ifndef GOSSAMER_RUNTIME_BASE_PROTOBUF_ERRORS_H_
#define GOSSAMER_RUNTIME_BASE_PROTOBUF_ERRORS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "google/protobuf/io/tokenizer.h"
#if __has_include("google/protobuf/stubs/logging.h")
#include "google/protobuf/stubs/logging.h"
#else
#include "absl/base/log_severity.h"
#include "absl/log/globals.h"
#endif

namespace gossamer {

// Hears of a text's errors, which would go to stderr otherwise.
class ParseErrors : public google::protobuf::io::ErrorCollector {
 public:
  // Protobuf has one of the two, so that neither can be called an override.
  void AddError(int line, int column, const std::string& message) {
    OnError(line, column, message);
  }
  void RecordError(int line, int column, absl::string_view message) {
    OnError(line, column, std::string(message));
  }

 private:
  virtual void OnError(int line, int column, const std::string& message) {}
};

// Keeps protobuf from writing to stderr about messages from then on.
inline void SilenceProtobuf() {
#if __has_include("google/protobuf/stubs/logging.h")
  google::protobuf::SetLogHandler(nullptr);
#else
  // The log is also gRPC's, which sets it again where GRPC_VERBOSITY is set.
  absl::SetMinLogLevel(absl::LogSeverityAtLeast::kInfinity);
#endif
}

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_BASE_PROTOBUF_ERRORS_H_
