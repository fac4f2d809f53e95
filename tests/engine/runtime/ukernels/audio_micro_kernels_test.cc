// Every audio micro-kernel that this processor can run against the definitions:
// spectrograms of all sizes of transform, and mel coefficients of them. Needs
// nothing but the kernels' own files.

#ifdef OPTFARM_FAST_KERNELS
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "engine/runtime/ukernels/audio/audio_functions.h"
#include "engine/runtime/ukernels/audio/fourier_tables.h"
#include "tests/engine/runtime/oracle/audio_oracle.h"
#include "tests/engine/runtime/ukernels/micro_kernel_cases.h"
#include "tests/engine/runtime/usable_entries.h"

namespace optfarm::runtime {
namespace {

// Slices of sound as an entry reads them, and their power spectra.
struct SoundCase {
  SoundCase(int64_t size, int64_t window, int64_t slices, int lanes,
            Random* random)
      : tables(size, lanes),
        samples(random->Reals((slices - 1) * kStride + window, -1, 1)),
        rows(kMostAudioLanes * FourierRoom(size, lanes)),
        scratch(4 * FourierRoom(size, lanes)) {
    for (const float x : random->Reals(window, 0, 1)) factors.push_back(x);
    input.samples = samples.data();
    input.stride = kStride;
    input.slices = slices;
    input.window = window;
    input.factors = factors.data();
    tables.PutInto(&input);
    input.last = FourierRow(lanes) / 2;
    input.rows = rows.data();
    input.scratch = scratch.data();
    for (int64_t slice = 0; slice < slices; ++slice) {
      std::vector<double> values;
      for (int64_t n = 0; n < window; ++n) {
        values.push_back(2 * factors[n] * samples[slice * kStride + n]);
      }
      powers.push_back(oracle::PowerSpectrum(values, 2 * size));
    }
  }
  SoundCase(const SoundCase&) = delete;
  SoundCase& operator=(const SoundCase&) = delete;

  static constexpr int64_t kStride = 5;
  FourierTables tables;
  std::vector<float> samples;
  std::vector<double> factors;
  Aligned<float> rows;
  Aligned<double> scratch;
  SpectrogramSlices input;
  // By slice.
  std::vector<std::vector<double>> powers;
};

// Bands over `bins` bins: one bin is nobody's at either end, the first band's
// lower half begins behind it, and one band has no bin of its own.
struct BandCase {
  BandCase(int bins, int bands, int coefficients, Random* random)
      : scratch(kMostAudioLanes * (bins + bands)), ordered(bins) {
    plain.bands = bands;
    plain.least = 1e-12;
    plain.coefficients = coefficients;
    for (int bin = 0; bin < bins; ++bin) {
      // -1 .. bands - 1, in order; band 1 has none.
      int owner = (bin - 1) * (bands + 1) / (bins - 2) - 1;
      if (bin == 0) owner = -2;
      if (bin == bins - 1) owner = bands;
      if (owner == 1) owner = 2;
      plain.owners.push_back(owner);
      plain.weights.push_back(random->Reals(1, 0, 1)[0]);
    }
    for (int band = -1; band <= bands; ++band) {
      edges.push_back(
          std::lower_bound(plain.owners.begin(), plain.owners.end(), band) -
          plain.owners.begin());
    }
    for (const float x : random->Reals(coefficients * bands, -1, 1)) {
      plain.cosines.push_back(x);
    }
    input.bins = bins;
    input.bands = bands;
    input.edges = edges.data();
    input.weights = plain.weights.data();
    input.least = plain.least;
    input.coefficients = coefficients;
    input.cosines = plain.cosines.data();
    input.ordered = ordered.data();
    input.scratch = scratch.data();
  }
  BandCase(const BandCase&) = delete;
  BandCase& operator=(const BandCase&) = delete;

  oracle::MelBands plain;
  std::vector<int64_t> edges;
  Aligned<double> scratch;
  std::vector<float> ordered;
  MelSlices input;
};

class AudioKernelTest : public ::testing::TestWithParam<const MicroKernel*> {
 protected:
  const AudioFunctions& functions() const { return *GetParam()->run.audio; }
  // `spectra`: of each slice.
  void CheckCoefficients(const BandCase& test,
                         const std::vector<std::vector<double>>& spectra,
                         const std::vector<float>& out) {
    for (size_t slice = 0; slice < spectra.size(); ++slice) {
      const std::vector<double> logs = test.plain.Logs(spectra[slice]);
      for (int i = 0; i < test.plain.coefficients; ++i) {
        double size = 0;
        for (const double log : logs) size += std::abs(log);
        ASSERT_NEAR(out[slice * test.plain.coefficients + i],
                    test.plain.Coefficient(logs, i), 2e-7 * size)
            << "slice " << slice << " of " << spectra.size() << ", " << i;
      }
    }
    ASSERT_EQ(out.back(), 77.0f);
  }
  Random random_;
};
// There is none for Arm.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(AudioKernelTest);

TEST_P(AudioKernelTest, SpectrogramsAreFourierTransforms) {
  for (int64_t size = kLeastFourier; size <= 1024; size *= 2) {
    for (const int64_t window :
         {kWindowBlock, size, size + kWindowBlock, 2 * size}) {
      for (const bool is_squared : {false, true}) {
        const int64_t slices = random_.Pick(1, 3);
        SoundCase test(size, window, slices, functions().lanes, &random_);
        std::vector<float> out(slices * (size + 1) + 1, 77.0f);
        test.input.is_squared = is_squared;
        test.input.out = out.data();
        functions().spectrogram(test.input);
        for (int64_t i = 0; i < slices * (size + 1); ++i) {
          const auto& powers = test.powers[i / (size + 1)];
          const double power = powers[i % (size + 1)];
          const double largest =
              *std::max_element(powers.begin(), powers.end());
          const double wanted = is_squared ? power : std::sqrt(power);
          const double scale = is_squared ? largest : std::sqrt(largest);
          ASSERT_NEAR(out[i], wanted, 1.2e-7 * wanted + 1e-11 * scale)
              << "size " << size << ", window " << window << ", at " << i;
        }
        ASSERT_EQ(out.back(), 77.0f);
      }
    }
  }
}

TEST_P(AudioKernelTest, CoefficientsOfSpectraAreTheOracles) {
  for (int slices = 1; slices <= 2 * kMostAudioLanes + 1; ++slices) {
    for (const int bins : {33, 64, 129}) {
      BandCase test(bins, random_.Pick(3, 20), random_.Pick(1, 13), &random_);
      const std::vector<float> spectrum =
          random_.Reals(int64_t{slices} * bins, 0, 100);
      std::vector<std::vector<double>> spectra(slices);
      for (int i = 0; i < slices * bins; ++i) {
        spectra[i / bins].push_back(spectrum[i]);
      }
      std::vector<float> out(slices * test.plain.coefficients + 1, 77.0f);
      test.input.spectrum = spectrum.data();
      test.input.slices = slices;
      test.input.out = out.data();
      functions().mel(test.input);
      CheckCoefficients(test, spectra, out);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(AudioKernelTest, CoefficientsOfSoundAreTheOracles) {
  for (int slices = 1; slices <= 2 * kMostAudioLanes + 1; ++slices) {
    for (const int64_t size : {64, 128, 256}) {
      SoundCase sound(size, size, slices, functions().lanes, &random_);
      BandCase test(static_cast<int>(size) + 1, random_.Pick(3, 20),
                    random_.Pick(1, 13), &random_);
      std::vector<float> out(slices * test.plain.coefficients + 1, 77.0f);
      sound.input.is_squared = true;
      test.input.out = out.data();
      functions().coefficients(sound.input, test.input);
      // The spectrum between them has single precision.
      std::vector<std::vector<double>> spectra = sound.powers;
      for (auto& spectrum : spectra) {
        for (double& power : spectrum) power = static_cast<float>(power);
      }
      CheckCoefficients(test, spectra, out);
      if (HasFatalFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Table, AudioKernelTest,
    ::testing::ValuesIn(UsableEntries(MicroKernelKind::kAudio)), EntryName);

}  // namespace
}  // namespace optfarm::runtime
#endif  // OPTFARM_FAST_KERNELS
