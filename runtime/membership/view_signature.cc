#include "runtime/membership/view_signature.h"

#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"
#include "topology/fleet/view_message.h"

namespace gossamer {
namespace {

// A signature names its purpose, so that one of a view passes for nothing else
// that the key signs.
constexpr char kContext[] = "view 1";

}  // namespace

absl::Status Sign(CertificateFolder& service, wire::ViewMessage& view) {
  GOSSAMER_ASSIGN_OR_RETURN(CertificateFolder::Signature signature,
                            service.Sign(kContext, SignedPart(view)));
  view.set_signature(std::move(signature.bytes));
  view.set_certificate(std::move(signature.certificate));
  return absl::OkStatus();
}

absl::Status CheckView(CertificateFolder& own, const wire::ViewMessage& view) {
  if (view.signature().empty()) {
    return absl::UnauthenticatedError("a view that nobody has signed");
  }
  GOSSAMER_ASSIGN_OR_RETURN(const Certificate signer,
                            own.CheckSigner(view.certificate()));
  // Every peer has a certificate of this authority; one of them must not hand
  // out views.
  if (signer.identity.role != Role::kTopology) {
    return absl::UnauthenticatedError(
        absl::StrCat("a view signed by ", Describe(signer.identity),
                     "; only the topology service may"));
  }
  // The run of the signer's certificate is checked with it; here the run that
  // the view itself names.
  if (view.run_id() != own.identity().run) {
    return absl::UnauthenticatedError("a view of another run");
  }
  const absl::Status is_signed = CheckSignature(
      view.certificate(), kContext, SignedPart(view), view.signature());
  if (is_signed.ok()) return is_signed;
  return absl::UnauthenticatedError(
      "a view that was changed after it was signed");
}

}  // namespace gossamer
