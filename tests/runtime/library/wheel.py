"""The wheel of a build, installed into a clean virtual environment."""

import pathlib
import subprocess


def install(build, source, python, folder):
    """Returns the environment's interpreter and the wheel; torch is `python`'s."""
    subprocess.run(
        [python, "-m", "pip", "wheel", "-q", "--no-build-isolation", "--no-deps",
         "--disable-pip-version-check", "--config-settings",
         f"cmake.define.GOSSAMER_BUILT={build}", "--config-settings",
         f"build-dir={folder}/build", "-w", folder / "wheel", source],
        check=True, timeout=300)
    (wheel,) = (folder / "wheel").glob("*.whl")
    subprocess.run([python, "-m", "venv", folder / "clean"], check=True)
    clean = folder / "clean/bin/python"
    subprocess.run([clean, "-m", "pip", "install", "-q", "--no-deps",
                    "--disable-pip-version-check", wheel], check=True)
    torch = subprocess.run(
        [python, "-c", "import torch; print(torch.__path__[0])"], check=True,
        capture_output=True, text=True).stdout.strip()
    (site,) = (folder / "clean/lib").glob("python*/site-packages")
    (site / "torch.pth").write_text(str(pathlib.Path(torch).parent))
    return clean, wheel
