"""The pipeline that ships: a prompt becomes a small Python package that was really built and checked."""

from services.worker.build.pipeline import pipeline

__all__ = ["pipeline"]
