#include "runtime/service/store.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "runtime/service/etcd/etcd_store.h"
#include "runtime/service/sqlite_store.h"

namespace gossamer {

absl::StatusOr<std::unique_ptr<Store>> OpenStore(const StoreOptions& options,
                                                 const std::string& run_id,
                                                 const std::string& self) {
  // The command line has made sure that one of the two places is given
  // (options.cc).
  if (options.folder.empty()) {
    return EtcdStore::Open({.endpoints = options.etcd,
                            .certificates = options.certificates,
                            .run_id = run_id,
                            .self = self,
                            .lease = options.lease});
  }
  std::error_code error;
  std::filesystem::create_directories(options.folder, error);
  if (error) {
    return absl::UnavailableError(
        absl::StrCat("cannot make the --state folder ", options.folder, ": ",
                     error.message()));
  }
  return SqliteStore::Open(absl::StrCat(options.folder, "/fleet.sqlite"));
}

}  // namespace gossamer
