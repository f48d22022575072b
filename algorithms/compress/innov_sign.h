// The consensus step size of signs of innovations, for codecs that use them.
//
// This header knows nothing of how signs are coded.

#ifndef GOSSAMER_ALGORITHMS_COMPRESS_INNOV_SIGN_H_
#define GOSSAMER_ALGORITHMS_COMPRESS_INNOV_SIGN_H_

namespace gossamer {

// Signs keep 0.5 to 0.64 of what they code, in the mean square.
inline constexpr float kGammaOfSign = 0.6f;

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_COMPRESS_INNOV_SIGN_H_
