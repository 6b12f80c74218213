import pytest
import torch


@pytest.fixture(autouse=True, scope="session")
def one_torch_thread():
  """As the commands do: two pools of threads that wait for one another are 15 times slower."""
  torch.set_num_threads(1)
