#include "runtime/base/sha256.h"

#include <openssl/evp.h>

#include <cstdlib>

namespace gossamer {

std::string Sha256(std::span<const std::byte> bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest, &size, EVP_sha256(),
                 nullptr) != 1) {
    // OpenSSL has no memory left.  An empty digest would be the same for all
    // certificates.
    std::abort();
  }
  return std::string(reinterpret_cast<const char*>(digest), size);
}

}  // namespace gossamer
