// What Mfcc's attributes mean: triangular bands on the mel scale and a cosine
// transform.

#ifndef OPTFARM_ENGINE_RUNTIME_REFERENCE_AUDIO_MEL_BANDS_H_
#define OPTFARM_ENGINE_RUNTIME_REFERENCE_AUDIO_MEL_BANDS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace optfarm::runtime {

// UNITS: hertz; bands and coefficients of the cosine transform.
struct MfccAttrs {
  double upper = 4000.0;
  double lower = 20.0;
  int64_t bands = 40;
  int64_t coefficients = 13;
};

// ERRORS: InvalidArgument for numbers that cannot be.
absl::StatusOr<MfccAttrs> ReadMfccAttrs(const tensorflow::NodeDef& node);

// By coefficient and band.
std::vector<double> MfccCosines(const MfccAttrs& attrs);

// A band without energy has this much: silence has a logarithm too.
inline constexpr double kLeastBand = 1e-12;

// Sums a spectrum into overlapping triangles that stand equally spaced on the
// mel scale. Each bin falls into two bands: with its weight into its own, with
// the rest into the next.
class MelBands {
 public:
  // ERRORS: InvalidArgument when the bands do not lie within the spectrum.
  static absl::StatusOr<MelBands> Create(const MfccAttrs& attrs, int64_t bins,
                                         double sample_rate);

  // Adds up the magnitudes of a spectrum of powers.
  void Sum(const float* spectrum, std::vector<double>* bands) const;

  // First and last bin that take part.
  int64_t begin() const { return begin_; }
  int64_t end() const { return end_; }
  // By bin: its own band, -1 before the first. They ascend.
  const std::vector<int64_t>& owners() const { return owners_; }
  const std::vector<double>& weights() const { return weights_; }

 private:
  void PlaceBins(const MfccAttrs& attrs, int64_t bins, double hertz_per_bin);

  int64_t begin_ = 0;
  int64_t end_ = 0;
  std::vector<int64_t> owners_;
  std::vector<double> weights_;
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_REFERENCE_AUDIO_MEL_BANDS_H_
