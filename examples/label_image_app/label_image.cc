// Names what is in a picture: label_image MODEL LABELS PICTURE.ppm
// The model takes one picture of floats, batch first; PPM (P6) needs no
// library.

#include <optfarm/runtime.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

using optfarm::api::Model;
using optfarm::api::Session;
using optfarm::api::Tensor;

static int Fail(const std::string& what) {
  std::fprintf(stderr, "label_image: %s\n", what.c_str());
  return 1;
}

int main(int argc, char** argv) {
  if (argc != 4) return Fail("usage: label_image MODEL LABELS PICTURE.ppm");
  const auto model = Model::Load(argv[1]);
  if (!model.ok()) return Fail(model.status().message());
  const auto inputs = model->Inputs();
  if (!inputs.ok()) return Fail(inputs.status().message());
  if (inputs->size() != 1 || !(*inputs)[0].dims ||
      (*inputs)[0].dims->size() != 4) {
    return Fail("the model does not take one picture");
  }
  std::vector<int64_t> dims = *(*inputs)[0].dims;
  dims[0] = 1;
  const int64_t height = dims[1], width = dims[2];
  if (height < 1 || width < 1 || dims[3] != 3) {
    return Fail("the model's picture has no fixed size of 3 colours");
  }

  std::ifstream file(argv[3], std::ios::binary);
  std::string magic;
  int64_t columns = 0, rows = 0, maximum = 0;
  file >> magic >> columns >> rows >> maximum;
  file.get();
  if (magic != "P6" || columns < 1 || rows < 1 || maximum != 255 ||
      columns > 20000 || rows > 20000) {
    return Fail("the picture is no P6 file of 255 levels");
  }
  std::vector<unsigned char> bytes(columns * rows * 3);
  file.read(reinterpret_cast<char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
  std::vector<float> pixels;
  for (int64_t i = 0; i < height * width * 3; ++i) {
    const int64_t y = i / 3 / width * rows / height;
    const int64_t x = i / 3 % width * columns / width;
    pixels.push_back((bytes[(y * columns + x) * 3 + i % 3] - 127.5f) / 127.5f);
  }

  const auto session = Session::Create(*model);
  if (!session.ok()) return Fail(session.status().message());
  const auto picture = Tensor::Copy<float>(pixels, dims);
  if (!picture.ok()) return Fail(picture.status().message());
  const auto outputs = session->Run(*picture);
  if (!outputs.ok()) return Fail(outputs.status().message());

  std::vector<std::string> labels;
  std::ifstream lines(argv[2]);
  for (std::string line; std::getline(lines, line);) labels.push_back(line);
  const auto scores = (*outputs)[0].data<float>();
  std::vector<size_t> order(std::min(scores.size(), labels.size()));
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  order.resize(std::min<size_t>(order.size(), 5));
  for (const size_t i : order) {
    std::printf("%s (%zu): %g\n", labels[i].c_str(), i, scores[i]);
  }
}
