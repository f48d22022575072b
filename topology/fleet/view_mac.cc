#include "topology/fleet/view_mac.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <utility>

#include "topology/fleet/view_message.h"

namespace gossamer {
namespace {

// Empty if OpenSSL cannot.
std::string MacOf(const std::string& key, const wire::ViewMessage& view) {
  const std::string bytes = SignedPart(view);
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
           digest, &size) == nullptr) {
    return "";
  }
  return std::string(reinterpret_cast<const char*>(digest), size);
}

}  // namespace

absl::Status AddMac(const std::string& key, wire::ViewMessage& view) {
  if (key.empty()) return absl::OkStatus();
  std::string mac = MacOf(key, view);
  if (mac.empty()) return absl::InternalError("OpenSSL cannot hash a view");
  view.set_signature(std::move(mac));
  return absl::OkStatus();
}

bool HasMac(const std::string& key, const wire::ViewMessage& view) {
  if (key.empty()) return false;
  const std::string mac = MacOf(key, view);
  // The comparison takes as long for every wrong MAC.
  return !mac.empty() && mac.size() == view.signature().size() &&
         CRYPTO_memcmp(mac.data(), view.signature().data(), mac.size()) == 0;
}

}  // namespace gossamer
