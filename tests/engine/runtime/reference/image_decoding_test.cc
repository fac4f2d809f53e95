// Files to pixels.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/files.h"
#include "tests/engine/runtime/run_op.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::runtime {
namespace {

using ::testing::ElementsAre;

std::string Little(uint32_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i, value >>= 8) {
    text.push_back(static_cast<char>(value));
  }
  return text;
}

// Two rows of two pixels, blue-green-red, the bottom row first, padded.
std::string SmallBmp(int32_t height) {
  const std::string rows = std::string("\x01\x02\x03\x04\x05\x06\0\0", 8) +
                           std::string("\x07\x08\x09\x0a\x0b\x0c\0\0", 8);
  return "BM" + Little(70, 4) + Little(0, 4) + Little(54, 4) + Little(40, 4) +
         Little(2, 4) + Little(static_cast<uint32_t>(height), 4) +
         Little(1, 2) + Little(24, 2) + Little(0, 4) + Little(16, 4) +
         Little(0, 16) + rows;
}

Tensor Contents(const std::string& bytes) {
  return Tensor::Scalar<std::string>(bytes);
}

TEST(DecodeBmpTest, TurnsRowsAndChannelsAround) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor image,
                               Op("DecodeBmp").In(Contents(SmallBmp(2))).Run());
  EXPECT_EQ(image.shape(), (Shape{2, 2, 3}));
  EXPECT_THAT(ValuesOf<uint8_t>(image),
              ElementsAre(9, 8, 7, 12, 11, 10, 3, 2, 1, 6, 5, 4));
  // A negative height means rows from the top.
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor flipped, Op("DecodeBmp").In(Contents(SmallBmp(-2))).Run());
  EXPECT_EQ(flipped.data<uint8_t>()[0], 3);
}

TEST(DecodeBmpTest, RefusesWhatDoesNotFit) {
  const std::string whole = SmallBmp(2);
  for (size_t size = 0; size < whole.size() - 2; ++size) {
    EXPECT_FALSE(
        Op("DecodeBmp").In(Contents(whole.substr(0, size))).Run().ok());
  }
  EXPECT_FALSE(Op("DecodeBmp").In(Contents(SmallBmp(1 << 30))).Run().ok());
}

TEST(DecodeJpegTest, DecodesScalesAndCrops) {
  OPTFARM_REQUIRE_TEST_DATA();
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const std::string bytes,
      ReadFile(testing::TestDataPath("misc/grace_hopper.jpg")));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor image,
                               Op("DecodeJpeg").In(Contents(bytes)).Run());
  EXPECT_EQ(image.shape(), (Shape{600, 512, 3}));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor half, Op("DecodeJpeg")
                                                      .Int("ratio", 2)
                                                      .Int("channels", 1)
                                                      .In(Contents(bytes))
                                                      .Run());
  EXPECT_EQ(half.shape(), (Shape{300, 256, 1}));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor crop, Op("DecodeAndCropJpeg")
                                                      .In(Contents(bytes))
                                                      .In(Ints({10, 20, 2, 1}))
                                                      .Run());
  EXPECT_EQ(crop.shape(), (Shape{2, 1, 3}));
  EXPECT_EQ(crop.data<uint8_t>()[3],
            image.data<uint8_t>()[(11 * 512 + 20) * 3]);
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor shape, Op("ExtractJpegShape").In(Contents(bytes)).Run());
  EXPECT_THAT(ValuesOf<int32_t>(shape), ElementsAre(600, 512, 3));
  // Cut off: refused, unless the node takes what there is.
  const std::string cut = bytes.substr(0, bytes.size() / 2);
  EXPECT_FALSE(Op("DecodeJpeg").In(Contents(cut)).Run().ok());
  OPTFARM_ASSERT_OK(Op("DecodeJpeg")
                        .Bool("try_recover_truncated", true)
                        .In(Contents(cut))
                        .Run()
                        .status());
}

TEST(DecodeImageTest, LooksAtTheFile) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor image, Op("DecodeImage").In(Contents(SmallBmp(2))).Run());
  EXPECT_EQ(image.data<uint8_t>()[0], 9);
  EXPECT_FALSE(Op("DecodeImage").In(Contents("GIF89a")).Run().ok());
  EXPECT_FALSE(Op("DecodePng").In(Contents("\x89PNG\r\n\x1a\n")).Run().ok());
}

TEST(DecodeRawTest, ReadsNumbersInEitherOrder) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor little,
                               Op("DecodeRaw")
                                   .Type("out_type", tensorflow::DT_INT16)
                                   .In(Contents(std::string("\1\0\0\2", 4)))
                                   .Run());
  EXPECT_THAT(ValuesOf<int16_t>(little), ElementsAre(1, 512));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor big,
                               Op("DecodeRaw")
                                   .Type("out_type", tensorflow::DT_INT16)
                                   .Bool("little_endian", false)
                                   .In(Contents(std::string("\1\0\0\2", 4)))
                                   .Run());
  EXPECT_THAT(ValuesOf<int16_t>(big), ElementsAre(256, 2));
}

}  // namespace
}  // namespace optfarm::runtime
