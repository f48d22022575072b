#include "runtime/identity/revoked_entry.h"

#include "runtime/identity/openssl.h"

namespace gossamer {
namespace {

// A UUID, which nobody has to register (ITU-T X.667):
// 7fd36b58-43c4-4255-920d-84f651323aa1.
constexpr char kName[] = "2.25.169909707312713814845760418651216951969";

// Null if OpenSSL has no memory for it.
const ASN1_OBJECT* Name() {
  static const ASN1_OBJECT* const name = OBJ_txt2obj(kName, /*no_name=*/1);
  return name;
}

}  // namespace

bool SetCertificateEnd(absl::Time end, X509_REVOKED* entry) {
  if (end == absl::InfiniteFuture()) return true;
  const openssl::TimePtr time(
      ASN1_GENERALIZEDTIME_set(nullptr, absl::ToTimeT(end)));
  const openssl::OctetsPtr value(ASN1_OCTET_STRING_new());
  if (!time || !value || Name() == nullptr) return false;
  unsigned char* der = nullptr;
  const int size = i2d_ASN1_GENERALIZEDTIME(time.get(), &der);
  const bool set =
      size > 0 && ASN1_OCTET_STRING_set(value.get(), der, size) == 1;
  OPENSSL_free(der);
  if (!set) return false;
  const openssl::ExtensionPtr extension(
      X509_EXTENSION_create_by_OBJ(nullptr, Name(), /*crit=*/0, value.get()));
  // X509_REVOKED_add_ext() copies the extension.
  return extension && X509_REVOKED_add_ext(entry, extension.get(), -1) == 1;
}

absl::Time CertificateEnd(const X509_REVOKED* entry) {
  if (Name() == nullptr) return absl::InfiniteFuture();
  const int at = X509_REVOKED_get_ext_by_OBJ(entry, Name(), -1);
  if (at < 0 || X509_REVOKED_get_ext_by_OBJ(entry, Name(), at) >= 0) {
    return absl::InfiniteFuture();
  }
  const ASN1_OCTET_STRING* value =
      X509_EXTENSION_get_data(X509_REVOKED_get_ext(entry, at));
  const unsigned char* der = ASN1_STRING_get0_data(value);
  const unsigned char* const past = der + ASN1_STRING_length(value);
  const openssl::TimePtr time(
      d2i_ASN1_GENERALIZEDTIME(nullptr, &der, past - der));
  ERR_clear_error();
  if (!time || der != past) return absl::InfiniteFuture();
  const absl::Time end = openssl::ToTime(time.get());
  ERR_clear_error();
  // ToTime() gives InfinitePast for a text that is no time: taken for an end it
  // would let the entry go at once.
  return end == absl::InfinitePast() ? absl::InfiniteFuture() : end;
}

}  // namespace gossamer
