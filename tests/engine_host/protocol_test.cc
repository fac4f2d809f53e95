#include "engine_host/protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <limits>
#include <string>
#include <vector>

#include "engine_host/socket.h"

namespace optfarm::engine_host {
namespace {

LoadedModel SomeModel() {
  LoadedModel model;
  model.version = "1.2.3";
  model.load_us = 12.5;
  model.inputs = {{"x", ElementType::kFloat, {-1, 3}},
                  {"n", ElementType::kInt64, {}}};
  model.outputs = {{"y", ElementType::kUint8, {7}}};
  return model;
}

std::vector<TensorValue> SomeTensors() {
  return {{{"x", ElementType::kFloat, {2, 1}}, std::string(8, 'a')},
          {{"none", ElementType::kInt8, {0, 5}}, ""}};
}

TEST(ProtocolTest, WhatIsEncodedIsDecoded) {
  LoadedModel model;
  ASSERT_TRUE(Decode(Encode(SomeModel()), &model));
  EXPECT_EQ(model.version, "1.2.3");
  EXPECT_EQ(model.load_us, 12.5);
  ASSERT_EQ(model.inputs.size(), 2u);
  EXPECT_EQ(model.inputs[0].dims, (std::vector<int64_t>{-1, 3}));
  EXPECT_EQ(model.inputs[1].type, ElementType::kInt64);
  EXPECT_EQ(model.outputs[0].name, "y");

  std::vector<TensorValue> tensors;
  ASSERT_TRUE(Decode(Encode(SomeTensors()), &tensors));
  EXPECT_EQ(tensors[0].bytes, "aaaaaaaa");
  EXPECT_EQ(tensors[1].info.name, "none");

  LoadRequest load;
  ASSERT_TRUE(Decode(Encode(LoadRequest{"m.onnx", 3, {0, 5}}), &load));
  EXPECT_EQ(load.model_path, "m.onnx");
  EXPECT_EQ(load.threads, 3u);
  EXPECT_EQ(load.cpus, (std::vector<uint32_t>{0, 5}));

  RunTimes times;
  ASSERT_TRUE(Decode(Encode(RunTimes{{1.5, 2.5}, 99}), &times));
  EXPECT_EQ(times.micros, (std::vector<double>{1.5, 2.5}));
  EXPECT_EQ(times.peak_bytes, 99u);
}

TEST(ProtocolTest, RefusesWhatIsCutShortOrTooLong) {
  const auto refused = [](const std::string& whole, auto decoded) {
    for (size_t size = 0; size < whole.size(); ++size) {
      EXPECT_FALSE(Decode(whole.substr(0, size), &decoded)) << size;
    }
    EXPECT_FALSE(Decode(whole + "x", &decoded));
  };
  refused(Encode(SomeModel()), LoadedModel());
  refused(Encode(SomeTensors()), std::vector<TensorValue>());
  refused(Encode(LoadRequest{"m", 1, {1}}), LoadRequest());
  refused(Encode(RunTimes{{1, 2}, 3}), RunTimes());
  refused(Encode(RunRequest{1, 2}), RunRequest());
}

TEST(ProtocolTest, SurvivesEveryChangedByte) {
  for (const std::string& whole : {Encode(SomeModel()), Encode(SomeTensors()),
                                   Encode(RunTimes{{1, 2}, 3})}) {
    for (size_t i = 0; i < whole.size(); ++i) {
      for (const unsigned char byte : {0x00, 0x7f, 0x80, 0xff}) {
        std::string changed = whole;
        changed[i] = static_cast<char>(byte);
        LoadedModel model;
        std::vector<TensorValue> tensors;
        RunTimes times;
        Decode(changed, &model);
        if (Decode(changed, &tensors)) {
          for (const TensorValue& tensor : tensors) {
            EXPECT_EQ(BytesOf(tensor.info.type, tensor.info.dims),
                      static_cast<int64_t>(tensor.bytes.size()));
          }
        }
        if (Decode(changed, &times)) {
          for (const double micros : times.micros) EXPECT_GE(micros, 0);
        }
      }
    }
  }
}

TEST(ProtocolTest, RefusesNumbersThatCannotBe) {
  RunTimes times;
  EXPECT_FALSE(Decode(Encode(RunTimes{{-1}, 0}), &times));
  EXPECT_FALSE(Decode(
      Encode(RunTimes{{std::numeric_limits<double>::quiet_NaN()}, 0}), &times));
  std::vector<TensorValue> tensors = SomeTensors();
  tensors[0].info.dims = {int64_t{1} << 62, 8};
  EXPECT_FALSE(Decode(Encode(tensors), &tensors));
  EXPECT_EQ(BytesOf(ElementType::kFloat, {int64_t{1} << 62, 8}), -1);
  EXPECT_EQ(BytesOf(ElementType::kNone, {1}), -1);
  EXPECT_EQ(BytesOf(ElementType::kFloat, {-1, 8}), -1);
  EXPECT_EQ(BytesOf(ElementType::kInt16, {}), 2);
}

class SocketTest : public ::testing::Test {
 protected:
  SocketTest() { EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends_), 0); }
  ~SocketTest() override {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  int ends_[2] = {-1, -1};
};

TEST_F(SocketTest, FramesArrive) {
  ASSERT_EQ(SendFrame(ends_[0], FrameKind::kRun, 7, "hello", 1000),
            Transfer::kDone);
  FrameHeader header;
  std::string payload;
  ASSERT_EQ(ReceiveFrame(ends_[1], &header, &payload, 1000), Transfer::kDone);
  EXPECT_EQ(header.kind, FrameKind::kRun);
  EXPECT_EQ(header.seconds, 7u);
  EXPECT_EQ(payload, "hello");
}

TEST_F(SocketTest, NothingWaitsForever) {
  FrameHeader header;
  std::string payload;
  EXPECT_EQ(ReceiveFrame(ends_[1], &header, &payload, 10), Transfer::kLate);
  // Promises more than comes.
  const FrameHeader promise = {FrameKind::kTimes, 0, 100};
  ASSERT_EQ(::send(ends_[0], &promise, sizeof(promise), 0),
            static_cast<ssize_t>(sizeof(promise)));
  EXPECT_EQ(ReceiveFrame(ends_[1], &header, &payload, 10), Transfer::kLate);
  // Nobody reads: the socket is full before this is through.
  EXPECT_EQ(
      SendFrame(ends_[0], FrameKind::kFeed, 0, std::string(16 << 20, 'x'), 10),
      Transfer::kLate);
}

TEST_F(SocketTest, RefusesMoreThanThereIsRoomFor) {
  const FrameHeader promise = {FrameKind::kTimes, 0, ~uint64_t{0}};
  ASSERT_EQ(::send(ends_[0], &promise, sizeof(promise), 0),
            static_cast<ssize_t>(sizeof(promise)));
  FrameHeader header;
  std::string payload;
  EXPECT_EQ(ReceiveFrame(ends_[1], &header, &payload, 1000),
            Transfer::kTooLong);
}

TEST_F(SocketTest, NoticesThatTheOtherEndIsGone) {
  ::shutdown(ends_[0], SHUT_RDWR);
  FrameHeader header;
  std::string payload;
  EXPECT_EQ(ReceiveFrame(ends_[1], &header, &payload, 1000), Transfer::kClosed);
  EXPECT_EQ(SendFrame(ends_[1], FrameKind::kDone, 0, "x", 1000),
            Transfer::kClosed);
}

}  // namespace
}  // namespace optfarm::engine_host
