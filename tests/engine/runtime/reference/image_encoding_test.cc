// Pixels to files and back, and animations.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/engine/runtime/run_op.h"
#include "tests/support/status_matchers.h"

namespace optfarm::runtime {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

template <typename T>
Tensor Picture(int64_t height, int64_t width, int64_t channels) {
  std::vector<T> values(height * width * channels);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(i * 3);
  return Tensor::FromValues<T>({height, width, channels}, values);
}

TEST(EncodePngTest, ComesBackAsItWas) {
  for (int64_t channels = 1; channels <= 4; ++channels) {
    const Tensor picture = Picture<uint8_t>(5, 7, channels);
    OPTFARM_ASSERT_OK_AND_ASSIGN(
        const Tensor file,
        Op("EncodePng").Type("T", tensorflow::DT_UINT8).In(picture).Run());
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor back,
                                 Op("DecodePng").In(file).Run());
    EXPECT_EQ(back.shape(), picture.shape());
    EXPECT_EQ(ValuesOf<uint8_t>(back), ValuesOf<uint8_t>(picture));
  }
  const Tensor picture = Picture<uint16_t>(3, 200, 3);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor file,
                               Op("EncodePng")
                                   .Type("T", tensorflow::DT_UINT16)
                                   .Int("compression", 9)
                                   .In(picture)
                                   .Run());
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor back,
      Op("DecodePng").Type("dtype", tensorflow::DT_UINT16).In(file).Run());
  EXPECT_EQ(ValuesOf<uint16_t>(back), ValuesOf<uint16_t>(picture));
}

TEST(EncodeJpegTest, ComesBackNearly) {
  for (int64_t channels : {1, 3}) {
    for (bool halves_chroma : {true, false}) {
      std::vector<uint8_t> values(16 * 16 * channels, 90);
      const Tensor picture =
          Tensor::FromValues<uint8_t>({16, 16, channels}, values);
      OPTFARM_ASSERT_OK_AND_ASSIGN(
          const Tensor file, Op("EncodeJpeg")
                                 .Int("quality", 100)
                                 .Bool("progressive", halves_chroma)
                                 .Bool("chroma_downsampling", halves_chroma)
                                 .Text("xmp_metadata", "<x/>")
                                 .In(picture)
                                 .Run());
      EXPECT_THAT(*file.data<std::string>(), HasSubstr("<x/>"));
      OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor back,
                                   Op("DecodeJpeg").In(file).Run());
      EXPECT_EQ(back.shape(), picture.shape());
      for (uint8_t value : ValuesOf<uint8_t>(back)) {
        EXPECT_LE(std::abs(value - 90), 2);
      }
    }
  }
}

TEST(EncodeImageTest, RefusesWhatAFormatCannotHold) {
  EXPECT_THAT(Op("EncodePng").In(Picture<uint8_t>(2, 2, 5)).Run(),
              StatusIs(kInvalid, HasSubstr("1 to 4 channels")));
  EXPECT_THAT(Op("EncodeJpeg").In(Picture<uint8_t>(2, 2, 2)).Run(),
              StatusIs(kInvalid, HasSubstr("2 channels")));
  EXPECT_THAT(Op("EncodeJpeg")
                  .Text("format", "rgb")
                  .In(Picture<uint8_t>(2, 2, 1))
                  .Run(),
              StatusIs(kInvalid, HasSubstr("format 'rgb'")));
  EXPECT_THAT(
      Op("EncodeJpeg").Int("quality", 101).In(Picture<uint8_t>(2, 2, 1)).Run(),
      StatusIs(kInvalid, HasSubstr("quality")));
  EXPECT_FALSE(Op("EncodePng").In(Picture<uint8_t>(0, 2, 3)).Run().ok());
}

// A GIF of four colors: black, red, green, white.
class GifMaker {
 public:
  GifMaker(int width, int height) {
    bytes_ = "GIF89a";
    Short(width);
    Short(height);
    bytes_ += std::string("\x81\x00\x00", 3);
    bytes_ +=
        std::string("\x00\x00\x00\xff\x00\x00\x00\xff\x00\xff\xff\xff", 12);
  }
  // `transparent`: -1 for none.
  GifMaker& Frame(int left, int top, int width, int height,
                  const std::vector<int>& pixels, int transparent = -1) {
    if (transparent >= 0) {
      bytes_ += std::string("\x21\xf9\x04\x01\x00\x00", 6);
      bytes_.push_back(static_cast<char>(transparent));
      bytes_.push_back(0);
    }
    bytes_.push_back(0x2c);
    for (int value : {left, top, width, height}) Short(value);
    bytes_.push_back(0);
    bytes_.push_back(2);
    // Each color behind a code that empties the table, so that codes stay
    // three bits long.
    unsigned int buffer = 0;
    int held = 0;
    std::string data;
    const auto put = [&](unsigned int code) {
      buffer |= code << held;
      held += 3;
      if (held >= 8) {
        data.push_back(static_cast<char>(buffer & 0xff));
        buffer >>= 8;
        held -= 8;
      }
    };
    for (int pixel : pixels) {
      put(4);
      put(static_cast<unsigned int>(pixel));
    }
    put(5);
    data.push_back(static_cast<char>(buffer));
    bytes_.push_back(static_cast<char>(data.size()));
    bytes_ += data;
    bytes_.push_back(0);
    return *this;
  }
  std::string Bytes() const { return bytes_ + ';'; }

 private:
  void Short(int value) {
    bytes_.push_back(static_cast<char>(value & 0xff));
    bytes_.push_back(static_cast<char>(value >> 8));
  }
  std::string bytes_;
};

absl::StatusOr<Tensor> Decode(const std::string& bytes) {
  return Op("DecodeGif").In(Tensor::Scalar<std::string>(bytes)).Run();
}

TEST(DecodeGifTest, AFrameCoversTheOneBefore) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor out,
                               Decode(GifMaker(2, 1)
                                          .Frame(0, 0, 2, 1, {1, 2})
                                          .Frame(1, 0, 1, 1, {3})
                                          .Bytes()));
  EXPECT_EQ(out.shape(), (Shape{2, 1, 2, 3}));
  EXPECT_THAT(ValuesOf<uint8_t>(out),
              ElementsAre(255, 0, 0, 0, 255, 0, 255, 0, 0, 255, 255, 255));
}

TEST(DecodeGifTest, TransparentPointsLetTheOneBeforeThrough) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor out,
                               Decode(GifMaker(2, 1)
                                          .Frame(0, 0, 2, 1, {1, 2})
                                          .Frame(0, 0, 2, 1, {3, 0}, 0)
                                          .Bytes()));
  EXPECT_THAT(ValuesOf<uint8_t>(out),
              ElementsAre(255, 0, 0, 0, 255, 0, 255, 255, 255, 0, 255, 0));
}

TEST(DecodeGifTest, WhatLiesOutsideIsCutOff) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor out,
      Decode(GifMaker(1, 1).Frame(0, 0, 2, 2, {1, 2, 3, 3}).Bytes()));
  EXPECT_THAT(ValuesOf<uint8_t>(out), ElementsAre(255, 0, 0));
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor none, Decode(GifMaker(1, 1).Frame(5, 0, 1, 1, {1}).Bytes()));
  EXPECT_THAT(ValuesOf<uint8_t>(none), ElementsAre(0, 0, 0));
}

TEST(DecodeGifTest, ADamagedFileIsAnError) {
  const std::string whole =
      GifMaker(2, 2).Frame(0, 0, 2, 2, {1, 2, 3, 0}).Bytes();
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(Decode(whole.substr(0, size)).ok()) << size;
  }
  for (size_t i = 0; i < whole.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      Decode(damaged).IgnoreError();
    }
  }
  EXPECT_THAT(
      Decode(GifMaker(65535, 65535).Frame(0, 0, 1, 1, {1}).Bytes()),
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("pixels")));
}

}  // namespace
}  // namespace optfarm::runtime
